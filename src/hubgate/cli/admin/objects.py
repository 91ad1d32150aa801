"""Commands for the store of large content."""

import argparse
import asyncio
import os
import sys
from typing import Any

from hubgate.cli import hub_settings
from hubgate.cli.admin import common
from hubgate.server.errors import HubError, StartupError
from hubgate.server.hub.context import Limits
from hubgate.server.objects import location
from hubgate.server.objects.copying import Copied, Copying
from hubgate.server.objects.folder import FolderObjects
from hubgate.server.objects.model import StoredObject
from hubgate.server.objects.opening import open_store, require_variables
from hubgate.server.resources import store_settings
from hubgate.server.settings import Settings

PROGRESS_EVERY = 100


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "objects", "the store of large files")
    copy = common.add(commands, "copy", "copy all large files to another store; the hub may be running", _copy)
    for flag, text in (("--from", "store to copy from"), ("--to", "store to copy to")):
        copy.add_argument(flag, dest=flag.strip("-") + "_url", required=True, metavar="STORE", help=_stores(text))
    copy.add_argument("--verify", action="store_true", help="read everything in the target again and compare hashes")


def _stores(text: str) -> str:
    return f"{text}: {location.FOLDER} (the data folder) or s3://bucket/prefix"


def _copy(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    source, target = _parse("--from", options.from_url), _parse("--to", options.to_url)
    if source == target:
        raise StartupError("--from and --to are the same store.")
    result = asyncio.run(_run(settings, source, target, verify=options.verify))
    counts = {"copied": result.objects, "bytes": result.bytes, "existing": result.existing, "damaged": result.damaged}
    sentence = f"Copied {result.objects:,} objects, {result.bytes:,} bytes; {result.existing:,} were already there."
    if result.damaged:
        sentence += (
            f" {len(result.damaged):,} are damaged and were not copied correctly: {', '.join(result.damaged[:10])}"
        )
    common.print_result(options, counts, sentence)
    return 1 if result.damaged else 0


def _parse(flag: str, value: str) -> str:
    try:
        found = location.parse_former_url(value)
    except ValueError as error:
        raise StartupError(f"{flag}: {error}") from None
    if not found:
        raise StartupError(f"{flag} must not be empty.")
    return found


async def _run(settings: Settings, source_url: str, target_url: str, *, verify: bool) -> Copied:
    opening = store_settings(settings, Limits())
    for url in (source_url, target_url):
        require_variables(type(opening)(settings.data_dir, url), os.environ)
    source, target = (open_store(url, opening, os.environ) for url in (source_url, target_url))
    copied = 0

    def show(_: StoredObject) -> None:
        nonlocal copied
        copied += 1
        if copied % PROGRESS_EVERY == 0 and sys.stderr.isatty():
            print(f"{copied:,} objects", file=sys.stderr)

    try:
        return await Copying(source, target, FolderObjects(settings.data_dir).temporary, verify).run(show)
    except HubError as error:
        detail = f": {error.__cause__}" if error.__cause__ else ""
        raise StartupError(f"{error.message}{detail} Run the command again to continue.") from error
    finally:
        await source.close()
        await target.close()
