"""Watches of repos that moved to another owner: they end, unless the watched name redirects to the repo (O69)."""
