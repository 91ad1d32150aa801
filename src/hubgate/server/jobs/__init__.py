"""Jobs that run off the event loop, in threads, subprocesses and the database, with fair sharing and deadlines.

Owns: the caller a job is charged to (`caller`), the deadline and the checkpoints of a job (`job`), the thread pool that
callers and repos share fairly, with its metrics (`pool`), slots for subprocesses and long reads (`slots`), and which
processes of the hub have died (`heartbeats`). Does not own: the work itself, or the number of threads for each kind of
work (`hub/git/threads.py`). Called by `hub` and `web` for every job, by `storage` for long reads, by the edge once for
every request, by `webhooks` and `spaces` for processes that share work.
"""
