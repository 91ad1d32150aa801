"""Signing in on a device without a browser (RFC 8628): the device shows a code, the user types it elsewhere.

A code goes from pending to approved or denied, once, and from approved to consumed, once: each step is one conditional
update, so that of any number of presses and polls at the same moment one outcome stands.
"""
