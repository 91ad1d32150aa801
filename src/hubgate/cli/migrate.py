"""Migrate the database to this version's schema. Stop older servers first."""

import argparse

from hubgate.cli import hub_settings
from hubgate.server.startup import migrate_database


def configure(parser: argparse.ArgumentParser) -> None:
    hub_settings.add_to(parser)


def run(options: argparse.Namespace) -> int:
    changed = migrate_database(hub_settings.read(options))
    print("The database was migrated." if changed else "The database is up to date.")
    return 0
