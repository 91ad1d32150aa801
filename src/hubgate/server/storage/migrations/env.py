"""Alembic asks this file how to run; `upgrade.py` hands it an open connection inside a transaction."""

from alembic import context

from hubgate.server.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
