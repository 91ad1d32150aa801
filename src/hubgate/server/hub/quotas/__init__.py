"""Storage quotas of users and organizations: the bytes of large files in their repos, each content counted once.

Owns: the limits (a default and an operator's exceptions), the bytes in use, and the checks before something is stored.
Leaves to others: git objects, which are not counted, and guests' uploads, which are charged to the guests
(`hub/guests`).
"""
