"""The hub's own things: repos and, later, collections, discussions and gates.

Owns: what a repo is, its content in git and large files, and every change to them with the event it records.
Does not own: who may (`access`), who is told (`webhooks`, through `events`), how it is spoken over HTTP (`web`).
"""
