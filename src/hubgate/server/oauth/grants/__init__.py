"""The token endpoint: one file per grant type, one line each in the registry.

The steps all grants share (one body, no doubled parameter, client authentication) are made before a grant is called,
so that none can forget them.
"""
