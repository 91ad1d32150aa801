"""Git on disk: object folders, read and written in dedicated threads, and the git program where it performs better.

Knows nothing of accounts, permissions or rows: callers pass the folder and the commit, which they have read from the
database or written as an object.
"""
