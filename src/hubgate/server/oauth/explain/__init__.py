"""Explains to an app's owner, and to nobody else, why a request of the app was rejected.

Owns the stored part of a rejected request (names, and harmless values), the retention, and the comparison with the
app's registration. The page belongs to `web`.
"""
