"""Client ID metadata documents: apps that are not registered, whose client id is the URL of a document about them.

Owns the document rules, fetching through `egress`, and caching by HTTP headers, within bounds.
"""
