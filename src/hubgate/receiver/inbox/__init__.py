"""The inbox: an SQLite file with deliveries that were acknowledged and still have to be processed.

Owns: the file, which process works on it, and retries of failed deliveries. Does not own: who may add a delivery
(`verification`), what a handler is (`handlers`). Called by `server`.
"""
