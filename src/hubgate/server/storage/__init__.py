"""Storage: one schema, two engines, one seam.

Owns the tables (`schema/`), how units of work run (`database.py` is the seam, `sqlite.py` and `postgres.py` the
engines) and how a database is set up and moved forward (`upgrade.py`, `migrations/`). It holds no rules: what is
stored and when is decided by the subjects, whose statements live in their own `store.py`.

Everything that keeps state calls it; it calls nothing of the hub but errors and clock.
"""
