"""Explains to an app's owner, and to nobody else, why a request of the app was rejected.

Owns which parts of a rejected request are stored (names, and harmless values) and for how long, and the comparison with
the app's registration. The page belongs to `web`.
"""
