"""What happened to repos, as watchers are told.

Owns: the kinds of events, the payload each freezes, and the row written in the transaction of the change itself
(`outbox`). Does not own: who watches and how they are told (`webhooks`), what makes a change (`hub`).
"""
