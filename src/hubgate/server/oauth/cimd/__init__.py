"""Apps that were never registered: their client id is the address of a document that describes them.

Owns the rules of such a document, fetching it through `egress`, and keeping it as long as HTTP allows.
"""
