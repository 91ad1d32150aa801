"""The one rate limiter: counts in the database, so that all processes share them.

Owns the buckets; what is limited and how tightly is said by the caller. API, token and git routes are not limited.
"""
