"""`hubgate doctor`: checks for common operator mistakes and says how to fix them."""

import os
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from msgspec import Struct

from hubgate.server.audit.verify import MAX_FLAWS, verify
from hubgate.server.clock import MINUTE, SECOND, Clock, iso, system_clock
from hubgate.server.errors import HubError, StartupError
from hubgate.server.hub.context import Limits
from hubgate.server.hub.git.program import require_git
from hubgate.server.hub.repos.sample_store import some_objects
from hubgate.server.logs import redacted
from hubgate.server.oauth.keys.model import current_key
from hubgate.server.objects.location import FOLDER
from hubgate.server.objects.opening import examine_store, open_store, require_variables
from hubgate.server.objects.store import refused_count
from hubgate.server.resources import Hub, open_hub, store_settings
from hubgate.server.secret import CannotOpen, secret_file
from hubgate.server.setting_values import is_loopback
from hubgate.server.settings import Settings
from hubgate.server.storage.upgrade import SchemaState, schema_error, schema_state
from hubgate.server.webhooks.insight.overview import is_any_process_delivering, read_overview
from hubgate.server.worker.space_runner import runner_for

# Leases and codes tolerate clocks this far apart. A larger skew means that the machine is misconfigured.
MAX_SKEW_SECONDS = 5
# The sealing loop runs every second.
LONGEST_UNSEALED = MINUTE
# The fan-out and delivery loops run many times a second.
LONGEST_OVERDUE = MINUTE
NO_PROCESS = "Start the hub or hubgate deliver."
OVERLOADED = "The processes that deliver are overloaded: start hubgate deliver on more machines."
# A process that delivers changes its heartbeat every two seconds.
HEARTBEAT_SECONDS = 6.0
# Large files, and xorbs, that are looked up in the store: enough to notice that it is another store.
SAMPLE = 20
EARLIEST_PLAUSIBLE_TIME = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND


class Finding(Struct, frozen=True):
    check: str
    level: Literal["ok", "warn", "fail"]
    text: str


async def examine(settings: Settings, clock: Clock = system_clock) -> list[Finding]:
    findings = [_configuration(settings), *_folder(settings), _public_address(settings), _mail(settings), _git()]
    findings += _spaces(settings)
    findings += [finding async for finding in _objects(settings)]
    try:
        hub = await open_hub(settings, clock)
    except (StartupError, OSError) as error:
        return [*findings, Finding("database", "fail", str(error))]
    try:
        findings += [finding async for finding in _database(hub)]
    finally:
        await hub.close()
    return findings


def _configuration(settings: Settings) -> Finding:
    text = f"every setting is known and well-formed; {settings.engine.name}, {settings.server}"
    return Finding("configuration", "ok", text)


def _git() -> Finding:
    try:
        return Finding("git", "ok", f"{require_git()} runs")
    except StartupError as error:
        return Finding("git", "fail", str(error))


def _spaces(settings: Settings) -> list[Finding]:
    if not settings.runs_spaces:
        return [Finding("spaces", "ok", "are stored, not run. Set HUBGATE_SPACES_RUNNER=bubblewrap to run them.")]
    if problems := runner_for(settings).problems():
        return [Finding("spaces", "fail", problem) for problem in problems]
    return [Finding("spaces", "ok", f"can run here with {settings.spaces_runner}, {settings.spaces_running:,} at once")]


async def _objects(settings: Settings) -> AsyncIterator[Finding]:
    opening = store_settings(settings, Limits())
    if not opening.url:
        yield Finding("large files", "ok", f"are stored in {settings.data_dir / 'lfs'}")
    try:
        require_variables(opening, os.environ)
    except StartupError as error:
        yield Finding("large files", "fail", str(error))
        return
    if opening.url:
        store = open_store(opening.url, opening, os.environ)
        try:
            async for found in examine_store(store):
                yield Finding("large files", found.level, redacted(found.text))
        finally:
            await store.close()
    if opening.former_url not in ("", opening.url or FOLDER):
        text = f"are still read from {opening.former_url}. Run: hubgate admin objects copy --from {opening.former_url}"
        text += f" --to {opening.url or FOLDER}, then unset HUBGATE_OBJECTS_FORMER_URL."
        yield Finding("large files", "warn", text)


def _folder(settings: Settings) -> list[Finding]:
    folder = settings.data_dir
    private = [(folder, 0o700, "chmod 700"), (secret_file(folder), 0o600, "chmod 600")]
    if settings.engine.file:
        private.append((settings.engine.file, 0o600, "chmod 600"))
    try:
        if not folder.is_dir():
            return [Finding("data folder", "fail", f"{folder} does not exist. Start the hub once.")]
        return [_permissions(path, limit, fix) for path, limit, fix in private if path.exists()]
    except PermissionError as error:
        text = f"this user may not read {error.filename}. Run as the user the hub runs as."
        return [Finding("data folder", "fail", text)]


def _permissions(path: Path, limit: int, fix: str) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & ~limit == 0:
        return Finding("permissions", "ok", f"{path} is private")
    return Finding("permissions", "fail", f"{path} is accessible to other users ({mode:o}). Run: {fix} {path}")


def _public_address(settings: Settings) -> Finding:
    host = urlsplit(settings.base_url).hostname or ""
    if is_loopback(host) and not is_loopback(settings.host) and not settings.raw["base_url"]:
        text = f"the hub listens on {settings.host}, but its links point to {settings.base_url}. Set HUBGATE_BASE_URL."
        return Finding("public address", "warn", text)
    if settings.secure or is_loopback(host):
        return Finding("public address", "ok", settings.base_url)
    text = f"{settings.base_url} is plain http: passwords and tokens are sent unencrypted. Use https."
    return Finding("public address", "warn", text)


def _mail(settings: Settings) -> Finding:
    if settings.smtp_url:
        return Finding("mail", "ok", "is sent through HUBGATE_SMTP_URL")
    level: Literal["ok", "warn"] = "ok" if is_loopback(urlsplit(settings.base_url).hostname or "") else "warn"
    return Finding("mail", level, f"is written to {settings.data_dir / 'mail'}. Set HUBGATE_SMTP_URL to send it.")


async def _database(hub: Hub) -> AsyncIterator[Finding]:
    try:
        state = await schema_state(hub.db)
        if state is not SchemaState.CURRENT:
            yield Finding("database", "fail", schema_error(state))
            return
        damage = await hub.db.damage()
        yield Finding("database", "fail" if damage else "ok", damage or "responds, and its schema is current")
        yield await _clock(hub)
        async for finding in _keys(hub):
            yield finding
        async for finding in _audit_log(hub):
            yield finding
        yield await _deliveries(hub)
        async for finding in _stored_files(hub):
            yield finding
    except HubError as error:
        yield Finding("database", "fail", redacted(f"Cannot use the database: {error.__cause__ or error.message}"))


async def _clock(hub: Hub) -> Finding:
    local = hub.clock()
    remote = await hub.db.clock()
    skew = abs(local - remote) / SECOND
    if local < EARLIEST_PLAUSIBLE_TIME:
        return Finding("clock", "fail", "this machine's clock is years behind. Set it, or tokens will not expire.")
    if skew > MAX_SKEW_SECONDS:
        return Finding(
            "clock", "fail", f"this machine and the database differ by {skew:.0f} s. Synchronize both with NTP."
        )
    return Finding("clock", "ok", f"within {MAX_SKEW_SECONDS} s of the database's")


async def _keys(hub: Hub) -> AsyncIterator[Finding]:
    keys = [key for key in await hub.keys.list_all() if key.revoked_at is None]
    if current_key(keys, hub.clock()) is None:
        yield Finding("keys", "fail", "no key signs ID tokens. Start the hub once to create one.")
        return
    for key in keys:
        try:
            hub.keys.check(key)
        except CannotOpen:
            yield Finding("keys", "fail", f"{key.kid} cannot be opened. Restore the secret that it was sealed with.")
            return
        except InvalidSignature:
            text = f"the private and public part of {key.kid} do not match. Run: hubgate admin keys revoke {key.kid}"
            yield Finding("keys", "fail", text)
            return
    yield Finding("keys", "ok", f"{len(keys)} signing key{'s' if len(keys) > 1 else ''}, all readable")


async def _audit_log(hub: Hub) -> AsyncIterator[Finding]:
    report = await verify(hub.db, hub.secret)
    for flaw in report.flaws:
        yield Finding("audit log", "fail", flaw)
    if len(report.flaws) == MAX_FLAWS:
        yield Finding("audit log", "fail", f"stopped after {MAX_FLAWS} flaws; other organizations were not checked.")
    entries = _counted(report.waiting, "entry", "entries")
    if report.waiting_since is not None and hub.clock() - report.waiting_since > LONGEST_UNSEALED:
        text = f"{entries} not sealed yet, the oldest from {iso(report.waiting_since)}."
        yield Finding("audit log", "warn", f"{text} Start the hub, or hubgate deliver.")
    elif not report.flaws:
        sealed, batches = _counted(report.entries, "entry", "entries"), _counted(report.batches, "batch", "batches")
        organizations = _counted(report.organizations, "organization", "organizations")
        yield Finding("audit log", "ok", f"{organizations}: {sealed} in {batches}, unchanged; {entries} not sealed yet")


async def _stored_files(hub: Hub) -> AsyncIterator[Finding]:
    if count := await hub.db.read_long(refused_count):
        text = f"the store refuses to delete {_counted(count, 'unused object', 'unused objects')}. Grant the hub the"
        yield Finding("large files", "warn", f"{text} right to delete; it tries again a day after each refusal.")
    sample = await hub.db.read_long(lambda tx: some_objects(tx, SAMPLE))
    try:
        missing = [item.key for item in sample if await hub.objects.size(item.key) != item.size]
    except (HubError, StartupError):
        # Named by the checks of the store.
        return
    if missing:
        text = f"{len(missing)} of {len(sample)} are missing in {hub.objects.name}, such as {missing[0]}. Set "
        text += "HUBGATE_OBJECTS_URL to the store that has them, or restore them from a backup."
        yield Finding("large files", "fail", text)


async def _deliveries(hub: Hub) -> Finding:
    overview = await read_overview(hub.db, hub.clock, hub.heartbeats)
    since = overview.oldest_at
    if since is None or hub.clock() - since <= LONGEST_OVERDUE:
        return Finding("webhooks", "ok", "no delivery is overdue")
    if await is_any_process_delivering(hub.db, HEARTBEAT_SECONDS):
        return Finding("webhooks", "warn", f"deliveries have been overdue since {iso(since)}. {OVERLOADED}")
    events = _counted(overview.events, "event", "events")
    waiting = f"{_counted(overview.waiting, 'delivery', 'deliveries')} and {events} wait"
    return Finding("webhooks", "warn", f"no process delivers. {waiting}, the oldest since {iso(since)}. {NO_PROCESS}")


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
