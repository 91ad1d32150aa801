"""Sign-in for third-party apps: OAuth 2.0 and OpenID Connect.

Owns clients, grants, consent, tokens and the keys that sign ID tokens. Accounts and their sessions belong to
`accounts`, what a token may do to `access`.
"""
