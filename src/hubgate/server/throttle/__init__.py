"""The rate limiter: counters are stored in the database, so that all processes share them.

Owns the buckets; callers define the limits. API, token and git routes are not limited.
"""
