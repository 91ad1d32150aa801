"""Explains to an app's owner, and to nobody else, why a request of the app was rejected.

Owns the stored parts of rejected requests (names, and harmless values), their retention, and the comparison with the
app's registration. The page belongs to `web`.
"""
