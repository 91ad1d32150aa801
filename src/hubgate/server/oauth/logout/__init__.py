"""Sign-out that an app requests (OpenID Connect RP-Initiated Logout).

Owns the checks of the request. The page that asks the user, and ends the session, belongs to `web`. Tokens of apps stay
valid: a user who signs out of the hub may still use an app.
"""
