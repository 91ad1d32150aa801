"""The audit log of an organization: an append-only record of changes to members, settings, apps, repos and webhooks.

An entry is inserted in the transaction of the change it describes, so the log always matches the changes. A background
loop seals new entries in batches, which form a hash chain; `hubgate doctor` verifies the chain. Owns recording,
sealing, retention and reading; `access` decides who may read the log.
"""
