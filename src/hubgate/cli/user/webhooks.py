"""Make, look at, change and try webhooks. They POST to a URL of yours whenever something you watch changes."""

import argparse
import sys
from datetime import UTC, datetime, timedelta

from hubgate.cli.user import common
from hubgate.cli.user.progress import Counter
from hubgate.client import Hub, HubgateError, Refused
from hubgate.client.answers import washed
from hubgate.client.models import Delivery, Sent, Webhook
from hubgate.client.shaping import plain

STATES = ("pending", "retrying", "parked", "delivered", "failed", "skipped", "cancelled", "stored")
DOMAINS = ("repo", "discussion")
_COUNTED = 1000
_FETCHED = "this webhook has no address, its events are fetched."


def configure(parser: argparse.ArgumentParser) -> None:
    commands = common.group(parser)
    _configure_changing(commands)
    _configure_looking(commands)


def _configure_changing(commands: common.Subparsers) -> None:
    example = "  hubgate webhooks create --url https://ci.acme.dev/webhooks/train --watch org:acme --domain repo"
    pulled = "  hubgate webhooks create --pull --watch model:acme/vision"
    create = _add(commands, "create", "make a webhook", _create, f"{example}\n{pulled}")
    where = create.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="where to POST")
    where.add_argument("--pull", action="store_true", help="keep events until they are asked for")
    _add_watch(create, required=True)
    _add_secret(create.add_mutually_exclusive_group())

    example = "  hubgate webhooks update 6530c2a1b2c3d4e5f6071829 --secret-stdin --overlap 3600 < secret.txt"
    update = _add_one(commands, "update", "change a webhook; what is not said stays", _update, example)
    update.add_argument("--url", help="where to POST")
    _add_watch(update, required=False)
    secret = update.add_mutually_exclusive_group()
    _add_secret(secret)
    secret.add_argument("--no-secret", action="store_true", help="take the secret away")
    update.add_argument("--overlap", type=int, metavar="SECONDS", help="sign with the old secret too for so long")

    for verb, summary, run in (("enable", "switch a webhook on", _enable), ("disable", "switch it off", _disable)):
        _add_one(commands, verb, summary, run, f"  hubgate webhooks {verb} 6530c2a1b2c3d4e5f6071829")
    example = "  hubgate webhooks delete 6530c2a1b2c3d4e5f6071829 --yes"
    delete = _add_one(commands, "delete", "delete a webhook for good", _delete, example)
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _configure_looking(commands: common.Subparsers) -> None:
    _add(commands, "list", "your webhooks", _list, "  hubgate webhooks list\n  hubgate webhooks list --org acme --json")
    _add_one(commands, "get", "one webhook", _get, "  hubgate webhooks get 6530c2a1b2c3d4e5f6071829")
    example = "  hubgate webhooks test 6530c2a1b2c3d4e5f6071829"
    _add_one(commands, "test", "send a sample and show the answer", _test, example)
    example = "  hubgate webhooks activity 6530c2a1b2c3d4e5f6071829 --state failed --limit 20"
    activity = _add_one(commands, "activity", "deliveries, the newest first", _activity, example)
    activity.add_argument("--state", choices=STATES, help="only those in this state")
    activity.add_argument("--limit", type=int, default=50, metavar="N", help="how many at most (default 50)")
    example = "  hubgate webhooks replay 6530c2a1b2c3d4e5f6071829 --since 2h --state failed --rate 5"
    replay = _add_one(commands, "replay", "send deliveries again", _replay, example)
    which = replay.add_mutually_exclusive_group(required=True)
    which.add_argument("delivery", nargs="?", metavar="DELIVERY", help="this one")
    which.add_argument("--since", type=common.moment, metavar="TIME", help="every event since: 2h, 1d, or a time")
    replay.add_argument("--rate", type=float, metavar="N", help="at most so many a second")
    replay.add_argument("--state", choices=STATES, help="with --since: only those in this state")


def run(options: argparse.Namespace) -> int:
    return common.perform(options)


def _add(
    commands: common.Subparsers, name: str, summary: str, run_it: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = common.add(commands, name, summary, run_it, examples)
    parser.add_argument("--org", metavar="ORG", help="those of this organization, for its admins")
    return parser


def _add_one(
    commands: common.Subparsers, name: str, summary: str, run_it: common.Run, examples: str
) -> argparse.ArgumentParser:
    parser = _add(commands, name, summary, run_it, examples)
    parser.add_argument("id", metavar="ID", help="as `hubgate webhooks list` shows it")
    return parser


def _add_watch(parser: argparse.ArgumentParser, *, required: bool) -> None:
    watch = "user:NAME, org:NAME, model:NAME, dataset:NAME or space:NAME; may be repeated"
    parser.add_argument(
        "--watch", nargs="+", action="extend", type=_watch, required=required, metavar="TYPE:NAME", help=watch
    )
    parser.add_argument(
        "--domain", action="append", choices=DOMAINS, help="repo or discussion; may be repeated (default both)"
    )


def _add_secret(group: "argparse._MutuallyExclusiveGroup") -> None:
    group.add_argument("--secret", metavar="S", help="others on this machine may see it; better:")
    group.add_argument("--secret-stdin", action="store_true", help="read the secret from standard input")


def _watch(text: str) -> str:
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise argparse.ArgumentTypeError(f"say TYPE:NAME, such as org:acme, not {text!r}")
    return text


def _secret(options: argparse.Namespace) -> str | None:
    if options.secret_stdin:
        line = sys.stdin.readline().strip()
        if not line:
            raise HubgateError("there is no secret on standard input.")
        return line
    given: str | None = options.secret
    return given


def _create(options: argparse.Namespace, hub: Hub) -> int:
    made = hub.create_webhook(
        options.url,
        watched=options.watch,
        domains=options.domain,
        secret=_secret(options),
        organization=options.org,
        pull=options.pull,
    )
    return common.say(options, made, f"✓ Made {made.id}. Try: hubgate webhooks test {made.id}{_org(options)}")


def _update(options: argparse.Namespace, hub: Hub) -> int:
    said = (options.url, options.watch, options.domain, options.secret)
    if all(one is None for one in said) and not (options.secret_stdin or options.no_secret):
        can = "--url, --watch, --domain, --secret-stdin or --no-secret; --overlap goes with a secret"
        raise ValueError(f"nothing to change. Say {can}.")
    changed = hub.update_webhook(
        options.id,
        options.url,
        options.watch,
        options.domain,
        secret="" if options.no_secret else _secret(options),
        overlap_seconds=options.overlap,
        organization=options.org,
    )
    return common.say(options, changed, f"✓ Changed {changed.id}.")


def _enable(options: argparse.Namespace, hub: Hub) -> int:
    webhook = hub.enable_webhook(options.id, organization=options.org)
    return common.say(options, webhook, f"✓ {webhook.id} is enabled.")


def _disable(options: argparse.Namespace, hub: Hub) -> int:
    webhook = hub.disable_webhook(options.id, organization=options.org)
    return common.say(options, webhook, f"✓ {webhook.id} is disabled. What happens meanwhile can be replayed.")


def _delete(options: argparse.Namespace, hub: Hub) -> int:
    common.confirm(options, f"This deletes the webhook {options.id} and its activity, for good.")
    hub.delete_webhook(options.id, organization=options.org)
    return common.say(options, {"deleted": options.id}, f"✓ Deleted {options.id}.")


def _list(options: argparse.Namespace, hub: Hub) -> int:
    found = hub.list_webhooks(organization=options.org)
    if not found and not options.json:
        print("No webhooks. Try: hubgate webhooks create --help")
        return 0
    rows = [] if options.json else [_row(hub, webhook, options.org) for webhook in found]
    return common.show(options, found, ["ID", "STATE", "URL", "24H", "LAST"], rows)


def _row(hub: Hub, webhook: Webhook, organization: str | None) -> list[str]:
    url = "(pull)" if webhook.url is None else washed(webhook.url, 120)
    return [webhook.id, _state(webhook), url, _today(hub, webhook, organization), common.age(webhook.last_trigger_at)]


def _today(hub: Hub, webhook: Webhook, organization: str | None) -> str:
    """How many deliveries in the last day; asked only where there was one."""
    since = datetime.now(UTC) - timedelta(days=1)
    if webhook.last_trigger_at is None or webhook.last_trigger_at < since:
        return "0"
    logged = hub.webhook_activity(webhook.id, limit=_COUNTED, organization=organization)
    count = sum(one.at >= since for one in logged)
    return f"{count}+" if count == _COUNTED else str(count)


def _state(webhook: Webhook) -> str:
    return "suspended" if isinstance(webhook.disabled, str) else washed(webhook.status, 20)


def _get(options: argparse.Namespace, hub: Hub) -> int:
    webhook = hub.get_webhook(options.id, organization=options.org)
    # A screen may be shared: people see that there is a secret, programs get it.
    lines = [
        f"id       {webhook.id}",
        f"state    {_state(webhook)}",
        f"url      {'(pull)' if webhook.url is None else washed(webhook.url)}",
        f"watched  {washed(', '.join(f'{item.type}:{item.name}' for item in webhook.watched), 2000)}",
        f"domains  {washed(', '.join(webhook.domains))}",
        f"secret   {'set' if webhook.secret else 'none'}",
        f"key      {washed(webhook.public_key or '-')}",
        f"last     {common.age(webhook.last_trigger_at)}",
    ]
    return common.say(options, webhook, "\n".join(lines))


def _test(options: argparse.Namespace, hub: Hub) -> int:
    return _told(options, hub, hub.test_webhook(options.id, organization=options.org))


def _activity(options: argparse.Namespace, hub: Hub) -> int:
    found = hub.webhook_activity(options.id, state=options.state, limit=options.limit, organization=options.org)
    if not found and not options.json:
        print("No deliveries.")
        return 0
    headings = ["DELIVERY", "STATE", "EVENT", "REPO", "STATUS", "TRIES", "AGE"]
    return common.show(options, found, headings, [_logged(one) for one in found])


def _logged(one: Delivery) -> list[str]:
    state = f"{one.state} ({one.reason})" if one.reason else one.state
    return [
        washed(one.id, 60),
        washed(state, 60),
        # A test is of no event but its own.
        washed(f"{one.event.scope} {one.event.action}", 60) + (" (test)" if one.event.id == one.id else ""),
        washed(one.repo.name, 120),
        "-" if one.status is None else str(one.status),
        str(one.attempts),
        common.age(one.at),
    ]


def _replay(options: argparse.Namespace, hub: Hub) -> int:
    if options.since is None:
        return _told(options, hub, hub.replay_webhook(options.id, options.delivery, organization=options.org))
    refused: list[Refused] = []
    with Counter("replayed") as counter:
        sent = hub.replay_webhook_since(
            options.id,
            options.since,
            state=options.state,
            rate=options.rate,
            progress=counter.report,
            refused=lambda _, error: refused.append(error),
            organization=options.org,
        )
    passed = f"{len(refused)} passed over: {refused[0]}" if refused else ""
    if refused and not sent:
        raise HubgateError(f"none could be sent. {passed}")
    common.say(options, sent, "" if options.json else _summary(options, hub, sent))
    if passed:
        print(f"! {passed}", file=sys.stderr)
    return 0


def _summary(options: argparse.Namespace, hub: Hub, sent: list[Sent]) -> str:
    if not sent:
        return "Nothing to send again."
    arrived = sum(_arrived(one) for one in sent)
    if arrived == len(sent):
        return f"✓ {arrived} sent again, and arrived."
    if sent[0].status is None and _became(options, hub, sent[0])[0] == "stored":
        return f"✓ {len(sent)} kept again: {_FETCHED}"
    return f"! {len(sent)} sent again, {arrived} arrived so far. {_see(options)}"


def _told(options: argparse.Namespace, hub: Hub, sent: Sent) -> int:
    state, attempts = _became(options, hub, sent) if sent.status is None else ("", 1)
    good = _arrived(sent) or state == "stored"
    if options.json:
        common.say(options, plain(sent) | {"status": sent.status}, "")
    elif state == "stored":
        print(f"✓ Kept: {_FETCHED}")
    elif sent.status is not None:
        print(f"{'✓' if good else '✕'} The receiver answered {sent.status}.")
    elif state in ("pending", "parked") and not attempts:
        print(f"! It is on its way: no try was made yet. {_see(options)}")
    else:
        raise HubgateError(f"no answer from the address. {_see(options)}")
    return 0 if good else 1


def _became(options: argparse.Namespace, hub: Hub, sent: Sent) -> tuple[str, int]:
    """State and tries of what got no answer."""
    try:
        found = hub.get_delivery(options.id, sent.id, organization=options.org)
    except Refused:
        # A token may be good for sending alone.
        return "", 1
    return found["state"], found.get("attempts", 0)


def _arrived(sent: Sent) -> bool:
    return sent.status is not None and 200 <= sent.status < 300


def _see(options: argparse.Namespace) -> str:
    return f"See: hubgate webhooks activity {options.id}{_org(options)}"


def _org(options: argparse.Namespace) -> str:
    return f" --org {options.org}" if options.org else ""
