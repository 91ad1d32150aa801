"""Searches over repos, accounts, collections and discussions, restricted to what the caller may see, and the documents
of everything that was stored before the search index existed.

The documents themselves are written by the packages that own the searched things (`server/search`).
"""
