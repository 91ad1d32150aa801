"""Guests: users who change a repo by pull requests because they may not write to it (attack O72).

Owns: the bytes they are charged for, the limits on those and on their pull requests, commits that only pull requests
brought, and dropping files that nothing needs any more. Does not own: pull requests themselves (`hub/discussions`).
"""
