"""Spaces that run: apps of users, executed by this hub in isolation.

Owns the runner's seam (`runner.py`), the runner `bubblewrap`, and the proxy for outgoing requests of apps. Does not own
the routes, which are in `web/`.
"""
