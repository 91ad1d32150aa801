"""Signing in: with a code typed elsewhere, or by a browser on this machine. The result is stored by origin."""
