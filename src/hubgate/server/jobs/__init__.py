"""Work off the event loop, in threads, programs and the database: who it is for, how long it may take, when it stops.

Owns: the caller a job is charged to (`caller`), the deadline and the checkpoints of a job (`job`), the threads, shared
fairly between callers and repos (`pool`), places for programs and long reads (`slots`), the figures an operator sees
(`figures`). Does not own: what the jobs do, how many threads each kind of work has (`hub/git/threads.py`). Called by
`hub` and `web` for every job, by `storage` for long reads, by the edge once for every request.
"""
