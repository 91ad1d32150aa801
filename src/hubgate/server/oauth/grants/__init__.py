"""The token endpoint: one file per grant type, one line each in the registry.

The endpoint reads the body, rejects repeated parameters and authenticates the client before a grant is called, and
`pipeline.py` has the steps after that, so that no grant can forget them.
"""
