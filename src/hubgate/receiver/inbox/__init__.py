"""The inbox: an SQLite file with deliveries that were acknowledged and still have to be processed.

Owns: the file, the lock of the process that works on it, and retries of failed deliveries. Does not own:
authentication (`verification`), calling a handler (`handlers`). Called by `server`.
"""
