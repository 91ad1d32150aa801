"""Webhooks: what they watch, who may receive which event, and every delivery until it succeeds or is given up.

The change itself writes its event (`events/`). `fanout/` creates a delivery for each watching webhook that may read
the repo; `delivering/` leases deliveries, sends them and records the results; `activity/` shows them to the owner, and
`retention/` deletes them. All state is in the database, so a crash loses no work: delivery is at least once.

`management/` creates and changes webhooks, with the options in `options.py`; `watches/` has the watched names, and
`permissions/` decides what a webhook may report on.
"""
