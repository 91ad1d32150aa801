"""Remembers what a consent page showed when the user approved: the servers, and the redirect URI of a native app.

A later request skips the consent page only if the user has approved the same before. The consent itself, which limits
tokens, belongs to `consent`, whose transactions call this package.
"""
