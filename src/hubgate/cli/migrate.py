"""Bring the database to this version's schema. On PostgreSQL stop older servers first."""

import argparse
import asyncio

from hubgate.cli import hub_settings
from hubgate.server.settings import Settings
from hubgate.server.storage.engines import create_database
from hubgate.server.storage.upgrade import migrate


def configure(parser: argparse.ArgumentParser) -> None:
    hub_settings.add_to(parser)


def run(options: argparse.Namespace) -> int:
    changed = asyncio.run(_migrate(hub_settings.read(options)))
    print("The database is up to date." if not changed else "The database was brought up to date.")
    return 0


async def _migrate(settings: Settings) -> bool:
    db = await create_database(settings.database_url)
    try:
        return await migrate(db, settings.database_url)
    finally:
        await db.close()
