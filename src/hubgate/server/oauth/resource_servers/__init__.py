"""Resource servers: APIs and MCP servers of users and organizations that accept tokens of this hub (RFC 8707).

Owns their registration, their secrets and the proof that an owner controls an identifier. Tokens for them are issued by
`grants` and looked up by `web/oauth/introspection.py`.
"""
