"""Commands that show, test and replay the deliveries of a webhook."""

import argparse
import sys
from dataclasses import dataclass
from datetime import UTC, datetime

from hubgate.cli.user import common
from hubgate.cli.user.progress import Counter
from hubgate.cli.user.webhook_arguments import add_with_id, org_option
from hubgate.client import Hub, HubgateError, Refused
from hubgate.client.codec import decode, decode_list, member
from hubgate.client.models import Delivery, Replay, SentDelivery
from hubgate.client.operations.webhooks import REPLAYABLE
from hubgate.client.responses import sanitized

STATES = ("pending", "retrying", "parked", "delivered", "failed", "skipped", "cancelled", "stored")
_SLOWEST, _FASTEST = 1, 200
_PULLED = "this webhook has no URL; its events are pulled."


@dataclass(frozen=True)
class _Attempt:
    at: datetime
    duration_ms: int
    status: int | None = None
    error: str | None = None
    response: str = ""

    def __str__(self) -> str:
        """The result of the attempt, with the beginning of the receiver's response."""
        text = self.error or f"{self.status} {self.response}"
        return f"{_utc(self.at)}  {self.duration_ms} ms  {sanitized(text, 200)}"


def configure(commands: common.Subparsers) -> None:
    example = "  hubgate webhooks test 6530c2a1b2c3d4e5f6071829"
    add_with_id(commands, "test", "send a sample delivery and show the response", _test, example)
    example = "  hubgate webhooks activity 6530c2a1b2c3d4e5f6071829 --state failed --limit 20"
    activity = add_with_id(commands, "activity", "list deliveries, newest first", _activity, example)
    activity.add_argument("delivery", nargs="?", metavar="DELIVERY", help="show only this delivery, with its attempts")
    activity.add_argument("--state", choices=STATES, help="only deliveries in this state")
    activity.add_argument(
        "--limit", type=common.positive_integer, default=50, metavar="N", help="the maximum number (default 50)"
    )
    example = "  hubgate webhooks replay 6530c2a1b2c3d4e5f6071829 --since 2h --state failed --rate 5"
    replay = add_with_id(commands, "replay", "send deliveries again", _replay, example)
    which = replay.add_mutually_exclusive_group(required=True)
    which.add_argument("delivery", nargs="?", metavar="DELIVERY", help="the delivery to send again")
    which.add_argument(
        "--since",
        type=common.parse_time,
        metavar="TIME",
        help="every event since this time, such as 2h, 1d or 2026-11-15T08:00Z, delivered ones too unless --state is "
        "given; the hub continues if you stop the command",
    )
    which.add_argument("--cancel", metavar="REPLAY", help="cancel a replay that was started with --since")
    replay.add_argument("--rate", type=_rate, metavar="N", help="with --since: the maximum per second (default 20)")
    replay.add_argument("--state", choices=REPLAYABLE, help="with --since: only deliveries in this state")


def _rate(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9 and _SLOWEST <= int(text) <= _FASTEST):
        raise argparse.ArgumentTypeError(f"must be deliveries per second, from {_SLOWEST} to {_FASTEST}, not {text!r}")
    return int(text)


def _test(options: argparse.Namespace, hub: Hub) -> int:
    return _report(options, hub, hub.test_webhook(options.id, organization=options.org))


def _activity(options: argparse.Namespace, hub: Hub) -> int:
    if options.delivery is not None:
        return _show_delivery(options, hub)
    found = hub.webhook_activity(options.id, state=options.state, limit=options.limit, organization=options.org)
    if not found and not options.json:
        print("No deliveries.")
        return 0
    headings = ["DELIVERY", "STATE", "EVENT", "REPO", "STATUS", "TRIES", "AGE"]
    return common.print_rows(options, found, headings, [_cells(delivery) for delivery in found])


def _cells(delivery: Delivery) -> list[str]:
    state = f"{delivery.state} ({delivery.reason})" if delivery.reason else delivery.state
    return [
        sanitized(delivery.id, 60),
        sanitized(state, 60),
        sanitized(f"{delivery.event.scope} {delivery.event.action}", 60) + _origin(delivery),
        sanitized(delivery.repo.name, 120),
        "-" if delivery.status is None else str(delivery.status),
        str(delivery.attempts),
        common.age(delivery.at),
    ]


def _origin(delivery: Delivery) -> str:
    if delivery.replay_of is not None:
        return " (replay)"
    # The event of a test has the delivery's own id.
    return " (test)" if delivery.event.id == delivery.id else ""


def _utc(when: datetime | None) -> str:
    return "-" if when is None else f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def _show_delivery(options: argparse.Namespace, hub: Hub) -> int:
    if options.state is not None:
        raise ValueError("--state cannot be used with DELIVERY.")
    found = hub.get_delivery(options.id, options.delivery, organization=options.org)
    delivery, tries = decode(Delivery, found), decode_list(_Attempt, member(found, "tries"))
    delivery_id, state, event, repo, *_ = _cells(delivery)
    lines = [
        f"id       {delivery_id}",
        f"state    {state}",
        f"event    {event}",
        f"repo     {repo}",
        f"queued   {_utc(delivery.at)}",
        f"next try {_utc(delivery.next_attempt_at)}",
        *(f"try {number:<4} {attempt}" for number, attempt in enumerate(tries, 1)),
    ]
    return common.print_result(options, found, "\n".join(lines))


def _replay(options: argparse.Namespace, hub: Hub) -> int:
    if options.since is None and (options.state is not None or options.rate is not None):
        raise ValueError("--state and --rate require --since.")
    if options.cancel is not None:
        replay = hub.cancel_replay(options.id, options.cancel, organization=options.org)
        sentence = f"✓ {replay.state.capitalize()}: {replay.done} of {replay.total} were sent."
        return common.print_result(options, replay, sanitized(sentence, 200))
    if options.since is None:
        return _report(options, hub, hub.replay_webhook(options.id, options.delivery, organization=options.org))
    states = REPLAYABLE if options.state is None else (options.state,)
    started = hub.start_replay(options.id, options.since, states=states, rate=options.rate, organization=options.org)
    replay = _follow(options, hub, started)
    if replay.state == "cancelled":
        raise HubgateError(f"the replay was cancelled after {replay.done} of {replay.total}. {_activity_hint(options)}")
    return common.print_result(options, replay, "" if options.json else _summary(options, hub, replay))


def _follow(options: argparse.Namespace, hub: Hub, started: Replay) -> Replay:
    try:
        with Counter("replayed") as counter:
            return hub.follow_replay(options.id, started.id, progress=counter.report, organization=options.org)
    except KeyboardInterrupt:
        command = f"hubgate webhooks replay {options.id} --cancel {sanitized(started.id, 60)}{org_option(options)}"
        print(f"! The hub continues the replay. To cancel it: {command}", file=sys.stderr)
        raise


def _summary(options: argparse.Namespace, hub: Hub, replay: Replay) -> str:
    if not replay.total:
        return "Nothing to replay."
    if hub.get_webhook(options.id, organization=options.org).url is None:
        return f"✓ {replay.done} stored again: {_PULLED}"
    return f"✓ {replay.done} replayed. {_activity_hint(options)}"


def _report(options: argparse.Namespace, hub: Hub, sent: SentDelivery) -> int:
    state, attempts = _current_state(options, hub, sent) if sent.status is None else ("", 1)
    succeeded = _succeeded(sent) or state == "stored"
    if options.json:
        common.print_result(options, sent, "")
    elif state == "stored":
        print(f"✓ Stored: {_PULLED}")
    elif sent.status is not None:
        print(f"{'✓' if succeeded else '✕'} The receiver answered {sent.status}.")
    elif state in ("pending", "parked") and not attempts:
        print(f"! The delivery is queued; it has not been attempted yet. {_activity_hint(options)}")
    else:
        raise HubgateError(f"the receiver did not respond. {_activity_hint(options)}")
    return 0 if succeeded else 1


def _current_state(options: argparse.Namespace, hub: Hub, sent: SentDelivery) -> tuple[str, int]:
    """The state and the number of attempts of a delivery without a response."""
    try:
        found = hub.get_delivery(options.id, sent.id, organization=options.org)
    except Refused:
        # The token may not be allowed to read deliveries.
        return "", 1
    return found["state"], found.get("attempts", 0)


def _succeeded(sent: SentDelivery) -> bool:
    return sent.status is not None and 200 <= sent.status < 300


def _activity_hint(options: argparse.Namespace) -> str:
    return f"See: hubgate webhooks activity {options.id}{org_option(options)}"
