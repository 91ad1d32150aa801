"""Webhooks of the stage: one that works and one of each problem, with all outcomes of a delivery."""

from msgspec.structs import replace

from hubgate.server.accounts.model import Organization, User
from hubgate.server.clock import DAY, HOUR, MINUTE, SECOND
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange, Snapshot, body_of
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks import deliveries_store as queue
from hubgate.server.webhooks.activity.rollup import RollUp
from hubgate.server.webhooks.deliveries_store import NewDelivery
from hubgate.server.webhooks.delivering import results_store
from hubgate.server.webhooks.delivering.results_store import Result
from hubgate.server.webhooks.management import store
from hubgate.server.webhooks.model import DISABLED, ENABLED, SUSPENDED, Watch, Webhook
from hubgate.server.webhooks.replaying import store as replays
from hubgate.server.webhooks.replaying.model import DONE, RUNNING, Replay
from hubgate.server.webhooks.requests.outcome import NO_ANSWER
from hubgate.server.webhooks.sealed_secrets import new_key, sealed_secret
from hubgate.server.webhooks.watches import store as watches

_WORKING, _SUSPENDED, _DISABLED, _PULL, _ACMES = (f"{number:024x}" for number in range(0xA0, 0xA5))
AT = f"/settings/webhooks/{_WORKING}"
SUSPENDED_AT = f"/settings/webhooks/{_SUSPENDED}"
DISABLED_AT = f"/settings/webhooks/{_DISABLED}"
ACMES_AT = f"/organizations/acme/settings/webhooks/{_ACMES}"
RETRYING = f"{AT}/deliveries/{0xD0:024x}"
SKIPPED = f"{AT}/deliveries/{0xD5:024x}"
DELIVERED = f"{AT}/deliveries/{0xD2:024x}"
_RUNNING_REPLAY, _DONE_REPLAY = f"{0x3E1:024x}", f"{0x3E0:024x}"
RUNNING_REPLAY, DONE_REPLAY = f"{AT}/replays/{_RUNNING_REPLAY}", f"{AT}/replays/{_DONE_REPLAY}"

_URL = "https://ci.acme.example/hooks/hubgate?pipeline=nightly"
_LONG_HOST = (
    "https://an-office-with-a-host-name-that-is-longer-than-a-phone-is-wide.subsidiary.example.org:8443/webhooks/train"
)
_REPOS = ("acme/vision-tiny", "ada/a-repo-with-a-name-of-ninety-six-characters-which-nothing-may-clip-or-push-off")
_PAGE = b"<!doctype html>\n<title>502 Bad Gateway</title>\n<h1>Bad Gateway</h1>\n<script>alert(1)</script>\n"
# State, reason, answers of its attempts.
_FATES: tuple[tuple[str, str, tuple[int | None, ...]], ...] = (
    ("retrying", "", (502, None, 503)),
    ("delivered", "", (200,)),
    ("delivered", "", (500, 204)),
    ("failed", "", (404,) * 12),
    ("pending", "", ()),
    ("skipped", "quota", ()),
    ("skipped", "forbidden", (None,)),
    ("skipped", "loop", ()),
    ("parked", "", (None, None)),
    ("delivered", "", (200,)),
    ("delivered", "", (201,)),
    ("delivered", "", (200,)),
)


async def add_webhooks(hub: Hub, ada: User, acme: Organization) -> None:
    now = hub.clock()
    working = _webhook(hub, _WORKING, ada.id, _URL, now)
    failing = replace(working, secret=sealed_secret(hub.secret, _WORKING, "hush"), failing_since=now - 2 * DAY)
    suspended = _webhook(hub, _SUSPENDED, ada.id, _LONG_HOST, now)
    made = [
        failing,
        replace(suspended, state=SUSPENDED, failing_since=now - 6 * DAY, suspended_at=now - DAY),
        replace(_webhook(hub, _DISABLED, ada.id, "http://10.0.0.8:7860/webhooks/label", now), state=DISABLED),
        replace(_webhook(hub, _PULL, ada.id, None, now), domains="repo"),
        replace(
            _webhook(hub, _ACMES, None, "https://bots.example/acme", now), org_id=acme.id, options={"ordered": True}
        ),
    ]
    watched = [Watch("user", "ada", ada.id), Watch("org", "acme", acme.id), Watch("model", _REPOS[0])]
    watched += [Watch("dataset", "nobody-yet/rows"), Watch("space", _REPOS[1])]

    async def unit(tx: Tx) -> None:
        for webhook in made:
            await store.add(tx, webhook)
            await watches.set_all(tx, webhook.id, watched if webhook is failing else watched[:2], now)
        await _fates(tx, failing, 0xD0, _FATES, now)
        waiting: tuple[tuple[str, str, tuple[int | None, ...]], ...] = (("skipped", "suspended", ()),) * 7
        await _fates(tx, suspended, 0x1D0, (*waiting, ("failed", "", (500,) * 12)), now)
        await _fates(tx, made[-1], 0x2D0, _FATES[1:3], now)
        await _replays(tx, now)

    await hub.db.write_long(unit)
    await _roll_up(hub, now)


async def _roll_up(hub: Hub, now: int) -> None:
    """The roll-up of the deliveries, and of a day before them that is not stored any more."""
    job = RollUp(hub.webhooks)
    while await job.step():
        pass
    last = now // HOUR * HOUR - 8 * HOUR
    hours = [
        {
            "id": _WORKING,
            "hour": last - place * HOUR,
            "total": 4 + place * 7 % 23,
            "delivered": 3 + place * 7 % 23 - place % 4,
            "failed": place % 4,
            "durations": f"0 {place % 5} 9 4 {place % 3} 0 0 {place % 2} 0 0 0 0",
        }
        for place in range(60)
        if place % 9
    ]
    sql = """
        INSERT INTO delivery_hours (webhook_id, hour, first_seq, last_seq, total, delivered, failed, skipped, durations)
        VALUES (:id, :hour, 0, 0, :total, :delivered, :failed, 1, :durations)
    """
    await hub.db.write_long(lambda tx: tx.exec_many(sql, hours))


async def _replays(tx: Tx, now: int) -> None:
    running = Replay(
        id=_RUNNING_REPLAY,
        webhook_id=_WORKING,
        since=now - DAY,
        states="failed skipped",
        picked=None,
        visible=None,
        rate=20,
        state=RUNNING,
        total=12_800,
        queued=3210,
        done=0,
        position=3210,
        last_position=20_000,
        created_at=now,
        ended_at=None,
    )
    ended = {"state": DONE, "total": 2, "queued": 2, "done": 2, "ended_at": now}
    await replays.add(tx, running)
    await replays.add(tx, replace(running, id=_DONE_REPLAY, picked='["x"]', **ended))


def _webhook(hub: Hub, webhook_id: str, user_id: str | None, url: str | None, now: int) -> Webhook:
    private, public = new_key(hub.secret, webhook_id)
    return Webhook(
        id=webhook_id,
        user_id=user_id,
        org_id=None,
        url=url,
        domains="repo discussion",
        secret=None,
        old_secret=None,
        old_secret_until=None,
        private_key=private,
        public_key=public,
        state=ENABLED,
        failing_since=None,
        closed_until=0,
        last_trigger_at=now - HOUR,
        suspended_at=None,
        created_at=now - 30 * DAY,
    )


async def _fates(
    tx: Tx, webhook: Webhook, first: int, fates: tuple[tuple[str, str, tuple[int | None, ...]], ...], now: int
) -> None:
    for place, (state, reason, answers) in enumerate(fates):
        at = now - place * 17 * MINUTE - 3 * HOUR
        name = _REPOS[place % 2]
        repo = Snapshot(f"{0xE0:024x}", "model", name, f"{0xE1:024x}", False, "1" * 40, ["vision"])
        change = {"updatedRefs": [RefChange("refs/heads/main", "0" * 39 + "1", "1" * 40)]}
        delivery = NewDelivery(
            id=f"{first + place:024x}",
            webhook_id=webhook.id,
            event_id=f"{0xF00 + first + place:024x}",
            seq=len(fates) - place,
            repo_id=repo.id,
            repo_seq=40 - place,
            repo_type="model",
            repo_name=name,
            scope="repo.content",
            action="update",
            depth=0,
            state=state,
            reason=reason,
            due_at=now + HOUR if state in ("retrying", "parked", "pending") else None,
            created_at=at,
            body=body_of(Kind.REPO_CONTENT, repo, change, "https://hub.example"),
            attempts=len(answers),
        )
        await queue.add(tx, [replace(delivery, state="pending", attempts=0)])
        for number, status in enumerate(answers, 1):
            tried_at = at + number * 31 * SECOND
            result = Result(
                id=delivery.id,
                webhook_id=webhook.id,
                number=number,
                state="retrying",
                status=status,
                due_at=now,
                tried_at=at + 31 * SECOND,
                ended_at=tried_at,
                at=tried_at,
                url=webhook.url or "",
                signature="v1,SGVsbG8sIHRoaXMgaXMgbm90IGEgc2lnbmF0dXJlIQ==",
                duration_ms=15_000 if status is None else 11 + 40 * number,
                error=NO_ANSWER if status is None else "",
                response=b"" if status is None else _PAGE if status >= 500 else b'{"queued": true}',
            )
            await results_store.record(tx, [result])
        ended_at = None if delivery.due_at else now
        await tx.exec(
            "UPDATE deliveries SET state = :state, reason = :reason, due_at = :due_at, ended_at = :at WHERE id = :id",
            {"id": delivery.id, "state": state, "reason": reason, "due_at": delivery.due_at, "at": ended_at},
        )
    await tx.exec("UPDATE webhooks SET last_seq = :last WHERE id = :id", {"id": webhook.id, "last": len(fates)})
