"""Sign-in for third-party apps: OAuth 2.0 and OpenID Connect.

Owns clients, grants, consent, tokens and the keys that sign ID tokens. Accounts and sessions belong to `accounts`,
the permissions of a token to `access`.
"""
