"""What a consent page showed when the user allowed an app: for which servers, and the address of an app on a device.

A later request passes without asking only where the user has seen the same. Owns that memory; the consent itself, which
limits tokens, is in `consent`, whose units call this.
"""
