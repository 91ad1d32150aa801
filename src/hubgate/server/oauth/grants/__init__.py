"""The token endpoint: one file per grant type, one line each in the registry.

The steps that all grants share (reading the body, rejecting repeated parameters, client authentication) run before a
grant is called, so that no grant can forget them.
"""
