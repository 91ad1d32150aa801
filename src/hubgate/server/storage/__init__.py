"""Storage: one schema and one interface for two engines, SQLite and PostgreSQL.

Owns the tables (`schema/`), the execution of units of work (`database.py` is the interface, `sqlite.py` and
`postgres.py` the engines), and the creation and migration of a database (`upgrade.py`, `migrations/`). There are no
business rules here: other packages decide what to store and when, and have their statements in a `store.py`.

Every package with state uses this one. This package depends only on low-level modules such as errors and clock.
"""
