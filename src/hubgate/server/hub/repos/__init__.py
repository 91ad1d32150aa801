"""Repos: creating, finding, listing, configuring, moving and deleting them, and moving their refs (`refs`).

The rows are the source of truth about a repo: objects are written to disk first, then one transaction moves the refs by
compare-and-swap and records the event.
"""
