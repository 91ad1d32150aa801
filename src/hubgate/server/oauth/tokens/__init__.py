"""Codes, access tokens and refresh tokens of apps. Stored as hashes; permissions are read at every use."""
