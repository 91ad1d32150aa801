"""Dynamic registration (RFC 7591, RFC 7592): clients without an account or a metadata document register themselves.

Such an app is a row of `apps` without an owner: public, marked on the consent page, and removed after 30 days without
use. Owns the metadata of clients, their registration access tokens, and the operator's initial access tokens.
"""
