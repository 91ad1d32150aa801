"""Webhooks: their watches, permissions and settings, and the delivery of events.

Every change to a repo stores its event in the same transaction (`events/`). `fanout/` creates a delivery for each
watching webhook that may read the repo; `shards/` decides which process sends it; `delivering/` queues deliveries in
memory and stores the results; `requests/` builds and sends the requests. `activity/` shows deliveries to the owner,
`stream/` lets the owner pull and follow them, and `retention/` deletes them. All state is in the database, so a crash
loses no work: delivery is at least once.

`management/` creates and changes webhooks, with the options in `options.py`; `watches/` stores the watched names, and
`permissions/` decides what a webhook may report on. `matching/` explains which events a webhook gets, `replaying/`
sends many deliveries again, `insight/` shows the operator all deliveries, and `tunnels/` forwards requests to receivers
on machines that the hub cannot reach.
"""
