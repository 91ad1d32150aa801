"""`hubgate webhooks listen`: shows the events of a webhook as they happen, and forwards them to a local receiver."""

import argparse
import contextlib
import sys
from collections.abc import Iterator

from hubgate.cli.user import common
from hubgate.cli.user.cursors import StoredCursor, abandoned_webhooks, open_cursor
from hubgate.cli.user.forwarding import Forwarder, forward_url
from hubgate.cli.user.interrupts import Interrupts
from hubgate.cli.user.listening import EventHandler, Listener
from hubgate.cli.user.webhook_arguments import add, add_optional_id, add_watch, org_option, whole_id
from hubgate.cli.user.webhook_secrets import add_secret, given_secret
from hubgate.client import Hub, HubgateError, NotFound, Refused
from hubgate.client.responses import sanitized

SCOPES = ("repo", "repo.content", "repo.config", "discussion", "discussion.comment")


def configure(commands: common.Subparsers) -> None:
    example = "  hubgate webhooks listen --forward http://localhost:7860/webhooks/train --watch org:acme"
    listen = add(
        commands,
        "listen",
        "show events as they happen, and forward them to a receiver on this computer",
        _listen,
        f"{example}\n  hubgate webhooks listen 6530c2a1b2c3d4e5f6071829 --event repo.content --print",
    )
    add_optional_id(listen, "without it, a webhook is created, and deleted on exit")
    listen.add_argument("--forward", type=forward_url, metavar="URL", help="send each event to this receiver")
    add_watch(listen, required=False, otherwise="; only without ID (default: your own repos)")
    add_secret(listen.add_mutually_exclusive_group())
    listen.add_argument(
        "--event",
        action="append",
        choices=SCOPES,
        metavar="SCOPE",
        help=f"only these events: {', '.join(SCOPES)}; may be repeated",
    )
    listen.add_argument("--print", action="store_true", help="show the payload of each event")
    listen.add_argument("--keep", action="store_true", help="do not delete the created webhook on exit")


def _listen(options: argparse.Namespace, hub: Hub) -> int:
    if options.id is not None and (options.watch or options.keep):
        raise ValueError("--watch and --keep are for a new webhook. Omit them, or the ID.")
    secret = given_secret(options)
    interrupts = Interrupts()
    with (
        interrupts.handled(),
        contextlib.suppress(KeyboardInterrupt),
        _cursor(options, hub, secret) as (webhook_id, cursor),
        Forwarder(options.forward, secret) if options.forward else contextlib.nullcontext() as forwarder,
    ):
        handler = EventHandler(forwarder, options.event, with_payload=options.print, as_json=options.json)
        Listener(hub, webhook_id, options.org, cursor, handler, interrupts).run()
    return 0


@contextlib.contextmanager
def _cursor(options: argparse.Namespace, hub: Hub, secret: str | None) -> Iterator[tuple[str, StoredCursor]]:
    """The webhook to follow, and its cursor."""
    if options.id is not None:
        webhook_id = whole_id(hub, options.id, options.org)
        with open_cursor(hub.endpoint, webhook_id) as cursor:
            yield webhook_id, cursor
        return
    _delete_abandoned(hub)
    watched = options.watch or [f"org:{options.org}" if options.org else f"user:{hub.whoami().name}"]
    created = hub.create_webhook(watched=watched, secret=secret, organization=options.org, pull=True)
    with open_cursor(hub.endpoint, created.id) as cursor:
        if not options.keep:
            cursor.mark_temporary(options.org)
        cursor.save(0)
        until = "it stays" if options.keep else "it is deleted on exit"
        shown = f"✓ Created webhook {sanitized(created.id, 60)} for {sanitized(', '.join(watched))}; {until}."
        print(shown, file=sys.stderr, flush=True)
        try:
            yield created.id, cursor
        finally:
            if cursor.is_temporary:
                _delete(options, hub, created.id, cursor)


def _delete(options: argparse.Namespace, hub: Hub, webhook_id: str, cursor: StoredCursor) -> None:
    try:
        with contextlib.suppress(NotFound):
            hub.delete_webhook(webhook_id, organization=options.org)
    except HubgateError:
        hint = f"hubgate webhooks delete {sanitized(webhook_id, 60)}{org_option(options)}"
        print(f"! The webhook could not be deleted. Run: {hint}", file=sys.stderr)
    else:
        cursor.delete()


def _delete_abandoned(hub: Hub) -> None:
    """Delete the webhooks of earlier commands that were killed. Those of another user are left to that user."""
    for webhook_id, cursor in abandoned_webhooks(hub.endpoint):
        with contextlib.suppress(Refused):
            hub.delete_webhook(webhook_id, organization=cursor.organization)
            cursor.delete()
