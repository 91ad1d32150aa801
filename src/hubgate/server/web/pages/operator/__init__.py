"""The operator's pages: overview, users, organizations, requests from app owners, privileges of apps, mail.

The operator flag grants access only to these pages, and tokens cannot access them. Each file has the routes of one
page. The page about Spaces is in `web/pages/spaces/operator.py`, with the same frame (`frame.py`).
"""
