"""Webhooks: what they watch, who may receive which event, and every delivery until it succeeds or is given up.

The change itself writes its event (`events/`). `fanout/` creates a delivery for each watching webhook that may read
the repo; `delivering/` leases deliveries, sends them and records the results; `activity/` shows them to the owner. All
state is in the database, so a crash loses no work: delivery is at least once.
"""
