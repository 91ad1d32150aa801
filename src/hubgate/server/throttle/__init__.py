"""The rate limiter: counters are stored in the database, so that all processes share them.

Owns the buckets; callers define the limits, on single actions such as sign-ins and mails. There is no general limit on
API, token and git requests.
"""
