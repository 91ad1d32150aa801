"""Alembic's environment. `upgrade.py` passes an open connection inside a transaction."""

from alembic import context

from hubgate.server.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
