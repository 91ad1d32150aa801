"""Repos: making, finding, listing, changing, moving, deleting, and moving their refs (`refs`).

The one truth about a repo is its rows: objects land on disk first, then one unit of work moves the refs, comparing what
they were, and writes the event.
"""
