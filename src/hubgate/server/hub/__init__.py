"""Repos, their discussions and pull requests, access to gated repos, and collections.

Owns: repos, their content in git and in large files, and every change to them with the event that records it.
Does not own: permissions (`access`), notifications (`webhooks`, through `events`), the HTTP interface (`web`).
"""
