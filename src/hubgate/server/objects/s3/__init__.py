"""Content in an S3-compatible store.

Owns: signatures (`signatures.py`), requests with retries (`requests.py`), answers in XML (`answers.py`), uploads in
parts (`multipart.py`), and the store built on them (`store_client.py`).
"""
