"""Discussions and pull requests: opening, commenting, changing, merging and removing them.

Owns: numbers, titles and statuses of discussions, their entries (`entries`), merges, and the events of the webhook
domain `discussion`. The ref of pull request N is refs/pr/N. Does not own: moving refs (`hub/repos/refs.py`), merging
trees (`hub/git/merges.py`), the charges of guests (`hub/guests`).
"""
