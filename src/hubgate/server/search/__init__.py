"""What can be searched: the words of names, titles and cards, stored as documents in the transaction of each change.

Used by the packages that own users, organizations, repos, discussions and collections. Queries, and the check of what
the caller may see, are in `hub/search`; the index itself is the engine's (`storage/database.py`).
"""
