"""`hubgate admin backup FILE | restore FILE`."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from hubgate.cli import hub_settings
from hubgate.cli.admin import leaf
from hubgate.server.errors import StartupError
from hubgate.server.secret import secret_file
from hubgate.server.storage import archive


def configure(subjects: Any) -> None:
    backup = leaf.add(subjects, "backup", "write one archive of the data folder, while serving", _backup)
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.add_argument("--with-keys", action="store_true", help="also the server secret; guard the archive like it")
    restore = leaf.add(subjects, "restore", "fill an empty data folder from an archive", _restore)
    restore.add_argument("file", type=Path, metavar="FILE")


def _backup(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    if options.with_keys and settings.secret_key:
        raise StartupError("The secret comes from HUBGATE_SECRET_KEY, not from a file: keep it yourself.")
    size = archive.backup(settings.database_url, settings.data_dir, options.file, with_keys=options.with_keys)
    result = {"file": str(options.file), "bytes": size, "withKeys": options.with_keys}
    where = "HUBGATE_SECRET_KEY" if settings.secret_key else str(secret_file(settings.data_dir))
    keys = "with the server secret: guard it" if options.with_keys else f"without the server secret: keep {where} too"
    return leaf.say(options, result, f"Wrote {options.file}, {size:,} bytes, {keys}.")


def _restore(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    archive.restore(settings.database_url, settings.data_dir, options.file)
    key = secret_file(settings.data_dir)
    has_key = bool(settings.secret_key) or key.exists()
    result = {"restored": str(settings.data_dir), "hasSecret": has_key}
    missing = "" if has_key else f" The server secret was not in it: put {key} back or set HUBGATE_SECRET_KEY."
    run = f"hubgate doctor --data-dir {shlex.quote(str(settings.data_dir))}"
    return leaf.say(options, result, f"Restored into {settings.data_dir}.{missing} Then run: {run}")
