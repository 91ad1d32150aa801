"""`hubgate admin keys rotate | list | revoke KID | reseal`, `backup FILE` and `restore FILE`."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from hubgate.cli import hub_settings
from hubgate.cli.admin import common
from hubgate.server.audit.head import reseal as reseal_audit
from hubgate.server.clock import iso
from hubgate.server.errors import StartupError
from hubgate.server.oauth.keys.algorithms import ALGORITHMS
from hubgate.server.oauth.keys.model import DEFAULT_ALGORITHM, SigningKey, state_of
from hubgate.server.objects.location import FOLDER
from hubgate.server.resources import Hub
from hubgate.server.secret import secret_file
from hubgate.server.settings import Settings
from hubgate.server.spaces.environment import reseal as reseal_spaces
from hubgate.server.storage import archive
from hubgate.server.webhooks.sealed_secrets import reseal as reseal_webhooks


def configure(subjects: Any) -> None:
    commands = common.group(
        subjects, "keys", "keys that sign ID tokens and JWT access tokens, and data encrypted with the server secret"
    )
    rotate = common.add(commands, "rotate", "publish a new key, which starts to sign after ten minutes", _rotate)
    rotate.add_argument(
        "--algorithm",
        choices=list(ALGORITHMS),
        default=DEFAULT_ALGORITHM,
        help="of the new key, by default %(default)s",
    )
    common.add(commands, "list", "list all keys with their states", _list)
    common.add(commands, "revoke", "revoke a leaked key immediately", _revoke).add_argument("kid", metavar="KID")
    common.add(commands, "reseal", "encrypt all sealed data with the first key of HUBGATE_SECRET_KEY", _reseal)
    _configure_archives(subjects)


def _configure_archives(subjects: Any) -> None:
    backup = common.add(subjects, "backup", "write an archive of the data folder; the hub may be running", _backup)
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.add_argument("--with-keys", action="store_true", help="include the server secret; then protect the archive")
    restore = common.add(subjects, "restore", "fill an empty data folder from an archive", _restore)
    restore.add_argument("file", type=Path, metavar="FILE")


def _rotate(options: argparse.Namespace) -> int:
    key = common.with_hub(options, lambda hub: hub.keys.rotate(options.algorithm))
    sentence = f"Published {key.kid}. It signs from {iso(key.signs_from)}."
    return common.print_result(options, _describe(key, [key], key.created_at), sentence)


def _list(options: argparse.Namespace) -> int:
    async def read(hub: Hub) -> list[dict[str, str | None]]:
        keys = await hub.keys.list_all()
        return [_describe(key, keys, hub.clock()) for key in keys]

    rows = common.with_hub(options, read)
    shown = ("kid", "algorithm", "state", "signsFrom", "publishedUntil")
    cells = [[str(row[name] or "") for name in shown] for row in rows]
    return common.print_rows(options, rows, ["KID", "ALGORITHM", "STATE", "SIGNS FROM", "PUBLISHED UNTIL"], cells)


def _revoke(options: argparse.Namespace) -> int:
    common.with_hub(options, lambda hub: hub.keys.revoke(options.kid))
    return common.print_result(options, {"revoked": options.kid}, f"Revoked {options.kid}.")


def _reseal(options: argparse.Namespace) -> int:
    async def reseal_all(hub: Hub) -> int:
        # Signing keys last: if one cannot be decrypted, resealing fails, but everything else is already resealed.
        others = await hub.outbox.reseal() + await reseal_audit(hub.db, hub.secret)
        others += await reseal_webhooks(hub.db, hub.secret) + await reseal_spaces(hub.db, hub.secret)
        return others + await hub.keys.reseal()

    count = common.with_hub(options, reseal_all)
    sentence = f"Resealed {count} values. You can now remove the other keys from HUBGATE_SECRET_KEY."
    return common.print_result(options, {"resealed": count}, sentence)


def _describe(key: SigningKey, keys: list[SigningKey], now: int) -> dict[str, str | None]:
    return {
        "kid": key.kid,
        "state": state_of(key, keys, now).value,
        "algorithm": key.algorithm,
        "createdAt": iso(key.created_at),
        "signsFrom": iso(key.signs_from),
        "publishedUntil": iso(key.published_until) if key.published_until and key.revoked_at is None else None,
    }


def _backup(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    if options.with_keys and settings.secret_key:
        raise StartupError("The secret is set by HUBGATE_SECRET_KEY, not by a file. Back it up yourself.")
    size = archive.backup(settings.database_url, settings.data_dir, options.file, with_keys=options.with_keys)
    result = {"file": str(options.file), "bytes": size, "withKeys": options.with_keys, **_left_to_store(settings)}
    where = "HUBGATE_SECRET_KEY" if settings.secret_key else str(secret_file(settings.data_dir))
    keys = "with the server secret: protect it" if options.with_keys else f"without the server secret: back up {where}"
    stores = _stores(settings)
    store = f" Large files in {stores} are not in it: back up that bucket." if stores else ""
    return common.print_result(options, result, f"Wrote {options.file}, {size:,} bytes, {keys}.{store}")


def _left_to_store(settings: Settings) -> dict[str, str]:
    stores = _stores(settings)
    return {"notIncluded": stores} if stores else {}


def _stores(settings: Settings) -> str:
    """The stores outside of the data folder, also one whose content is being copied into the folder."""
    return " and ".join(url for url in (settings.objects_url, settings.objects_former_url) if url not in ("", FOLDER))


def _restore(options: argparse.Namespace) -> int:
    settings = hub_settings.read(options)
    archive.restore(settings.database_url, settings.data_dir, options.file)
    key = secret_file(settings.data_dir)
    has_key = bool(settings.secret_key) or key.exists()
    result = {"restored": str(settings.data_dir), "hasSecret": has_key, **_left_to_store(settings)}
    remedy = f"restore {key} or set HUBGATE_SECRET_KEY."
    missing = "" if has_key else f" The archive does not include the server secret: {remedy}"
    run = f"hubgate doctor --data-dir {shlex.quote(str(settings.data_dir))}"
    stores = _stores(settings)
    store = f" Large files are read from {stores}." if stores else ""
    return common.print_result(options, result, f"Restored into {settings.data_dir}.{missing}{store} Next, run: {run}")
