"""Guests: users without write permission, who change a repo by pull requests (attack O72).

Owns: the bytes that guests are charged for, the limits on bytes and pull requests, the marks on commits that are only
in pull requests, and the deletion of unneeded files. Does not own: pull requests (`hub/discussions`).
"""
