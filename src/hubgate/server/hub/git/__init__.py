"""Git on disk: folders with objects, read and written in threads of their own, and the git program where it is better.

Knows nothing of accounts, rights or rows: callers say which folder and which commit. Every commit named here was found
in the database or landed as an object before.
"""
