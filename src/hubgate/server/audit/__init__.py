"""The organization's append-only log: who did what to membership, settings and apps.

An entry is a plain insert in the transaction of the change it tells of, so the log never lies about what happened. A
loop seals new entries in batches and links the batches by their hashes; `hubgate doctor` walks that chain. Owns
recording, sealing, retention and reading; who may read it is judged by `access`.
"""
