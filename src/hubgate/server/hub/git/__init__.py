"""Git on disk: object folders, read and written in dedicated threads, and the git program where it does better.

Knows nothing of accounts, permissions or rows: callers pass the folder and the commit. Every commit passed here was
read from the database or written as an object before.
"""
