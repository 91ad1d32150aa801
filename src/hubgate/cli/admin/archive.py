"""`hubgate admin backup FILE | restore FILE`."""

import argparse
import asyncio
from pathlib import Path
from typing import Any

from hubgate.cli import hub_settings
from hubgate.cli.admin import leaf
from hubgate.cli.output import print_json
from hubgate.server.storage import archive


def configure(subjects: Any) -> None:
    backup = leaf.add(subjects, "backup", "write one archive of the data folder, while serving", _backup)
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.add_argument("--with-keys", action="store_true", help="also the server secret; guard the archive like it")
    restore = leaf.add(subjects, "restore", "fill an empty data folder from an archive", _restore)
    restore.add_argument("file", type=Path, metavar="FILE")


def _backup(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    size = asyncio.run(
        asyncio.to_thread(
            archive.backup, settings.database_url, settings.data_dir, options.file, with_keys=options.with_keys
        )
    )
    keys = "with the server secret" if options.with_keys else "without the server secret: keep secret.key elsewhere"
    said = {"file": str(options.file), "bytes": size, "withKeys": options.with_keys}
    print_json(said) if options.json else print(f"Wrote {options.file}, {size:,} bytes, {keys}.")
    return 0


def _restore(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    archive.restore(settings.database_url, settings.data_dir, options.file)
    said = {"restored": str(settings.data_dir)}
    print_json(said) if options.json else print(f"Restored into {settings.data_dir}. Run: hubgate doctor")
    return 0
