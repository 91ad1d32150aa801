"""Create, list, change and test webhooks, which send a POST to your URL when something you watch changes."""

import argparse
from datetime import UTC, datetime, timedelta
from typing import cast, get_args, get_type_hints

from hubgate.cli.user import common, deliveries, listen
from hubgate.cli.user.webhook_arguments import add, add_watch, add_with_id, org_option, short_ids
from hubgate.cli.user.webhook_secrets import add_secret, given_secret
from hubgate.client import Hub
from hubgate.client.models import Webhook, WebhookOptions
from hubgate.client.responses import sanitized

DOMAINS = ("repo", "discussion")
_MAX_COUNT = 1000
# The type and the help of each option.
_OPTIONS = {
    name: (get_args(kind)[0], text)
    for name, (kind, text) in (
        (name, get_args(hint)) for name, hint in get_type_hints(WebhookOptions, include_extras=True).items()
    )
}


def configure(parser: argparse.ArgumentParser) -> None:
    commands = common.group(parser)
    _configure_changes(commands)
    _configure_queries(commands)
    deliveries.configure(commands)
    listen.configure(commands)


def _configure_changes(commands: common.Subparsers) -> None:
    example = "  hubgate webhooks create --url https://ci.acme.dev/webhooks/train --watch org:acme --domain repo"
    pulled = "  hubgate webhooks create --pull --watch model:acme/vision"
    create = add(commands, "create", "create a webhook", _create, f"{example}\n{pulled}")
    where = create.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="the URL to send events to")
    where.add_argument("--pull", action="store_true", help="store events until they are pulled")
    _add_settings(create, required=True)
    add_secret(create.add_mutually_exclusive_group())

    example = "  hubgate webhooks update 6530c2a1b2c3d4e5f6071829 --secret-stdin --overlap 3600 < secret.txt"
    update = add_with_id(commands, "update", "change a webhook; other settings stay unchanged", _update, example)
    update.add_argument("--url", help="the URL to send events to")
    _add_settings(update, required=False)
    secret = update.add_mutually_exclusive_group()
    add_secret(secret)
    secret.add_argument("--no-secret", action="store_true", help="remove the secret")
    update.add_argument("--overlap", type=int, metavar="SECONDS", help="also sign with the old secret for this time")

    for verb, summary, run in (("enable", "enable a webhook", _enable), ("disable", "disable a webhook", _disable)):
        add_with_id(commands, verb, summary, run, f"  hubgate webhooks {verb} 6530c2a1b2c3d4e5f6071829")
    example = "  hubgate webhooks delete 6530c2a1b2c3d4e5f6071829 --yes"
    delete = add_with_id(commands, "delete", "delete a webhook permanently", _delete, example)
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _configure_queries(commands: common.Subparsers) -> None:
    add(
        commands,
        "list",
        "list your webhooks",
        _list,
        "  hubgate webhooks list\n  hubgate webhooks list --org acme --json",
    )
    add_with_id(commands, "get", "show a webhook", _get, "  hubgate webhooks get 6530c2a1b2c3d4e5f6071829")


def run(options: argparse.Namespace) -> int:
    return common.perform(options)


def _add_settings(parser: argparse.ArgumentParser, *, required: bool) -> None:
    add_watch(parser, required=required)
    parser.add_argument(
        "--domain", action="append", choices=DOMAINS, help="repo or discussion; may be repeated (default both)"
    )
    for name, (kind, text) in _OPTIONS.items():
        if kind is bool:
            parser.add_argument(_flag(name), action=argparse.BooleanOptionalAction, help=text)
        else:
            parser.add_argument(_flag(name), type=kind, help=text)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _webhook_options(options: argparse.Namespace) -> WebhookOptions:
    return cast("WebhookOptions", {name: getattr(options, name) for name in _OPTIONS})


def _create(options: argparse.Namespace, hub: Hub) -> int:
    created = hub.create_webhook(
        options.url,
        watched=options.watch,
        domains=options.domain,
        secret=given_secret(options),
        organization=options.org,
        pull=options.pull,
        **_webhook_options(options),
    )
    next_command = "listen" if options.pull else "test"
    suggested = f"hubgate webhooks {next_command} {_id(created)}{org_option(options)}"
    return common.print_result(options, created, f"✓ Created {_id(created)}. Try: {suggested}")


def _update(options: argparse.Namespace, hub: Hub) -> int:
    changes = (options.url, options.watch, options.domain, options.secret, *_webhook_options(options).values())
    if all(one is None for one in changes) and not (options.secret_stdin or options.no_secret):
        flags = ", ".join(["--url", "--watch", "--domain", *map(_flag, _OPTIONS)])
        raise ValueError(
            f"nothing to change. Pass {flags}, --secret-stdin or --no-secret; --overlap requires a secret."
        )
    if options.overlap is not None and options.secret is None and not options.secret_stdin:
        raise ValueError("--overlap requires a new secret. Add --secret-stdin, or omit --overlap.")
    changed = hub.update_webhook(
        options.id,
        options.url,
        options.watch,
        options.domain,
        secret="" if options.no_secret else given_secret(options),
        overlap_seconds=options.overlap,
        organization=options.org,
        **_webhook_options(options),
    )
    return common.print_result(options, changed, f"✓ Changed {_id(changed)}.")


def _enable(options: argparse.Namespace, hub: Hub) -> int:
    webhook = hub.enable_webhook(options.id, organization=options.org)
    return common.print_result(options, webhook, f"✓ {_id(webhook)} is enabled.")


def _disable(options: argparse.Namespace, hub: Hub) -> int:
    webhook = hub.disable_webhook(options.id, organization=options.org)
    return common.print_result(
        options, webhook, f"✓ {_id(webhook)} is disabled. Events that it misses can be replayed."
    )


def _delete(options: argparse.Namespace, hub: Hub) -> int:
    common.confirm(options, f"This deletes the webhook {options.id} and its activity permanently.")
    hub.delete_webhook(options.id, organization=options.org)
    return common.print_result(options, {"deleted": options.id}, f"✓ Deleted {options.id}.")


def _list(options: argparse.Namespace, hub: Hub) -> int:
    found = hub.list_webhooks(organization=options.org)
    if not found and not options.json:
        print("No webhooks. Try: hubgate webhooks create --help")
        return 0
    shown_ids = short_ids([_id(webhook) for webhook in found])
    rows = [] if options.json else [_row(hub, webhook, shown_ids[_id(webhook)], options.org) for webhook in found]
    return common.print_rows(options, found, ["ID", "STATE", "URL", "24H", "LAST"], rows)


def _row(hub: Hub, webhook: Webhook, shown_id: str, organization: str | None) -> list[str]:
    url = "(pull)" if webhook.url is None else sanitized(webhook.url, 120)
    return [shown_id, _state(webhook), url, *_recent_activity(hub, webhook, organization)]


def _recent_activity(hub: Hub, webhook: Webhook, organization: str | None) -> tuple[str, str]:
    """The number of deliveries in the last day, including tests and replays, and the age of the newest delivery."""
    since = datetime.now(UTC) - timedelta(days=1)
    # Most webhooks have no recent deliveries, and one entry is enough to see that.
    logged = hub.webhook_activity(webhook.id, limit=1, organization=organization)
    if logged and logged[0].at >= since:
        logged = hub.webhook_activity(webhook.id, limit=_MAX_COUNT, organization=organization)
    count = sum(one.at >= since for one in logged)
    # Deliveries are deleted after a while; the time of the last event is retained.
    newest = logged[0].at if logged else webhook.last_trigger_at
    return f"{count}+" if count == _MAX_COUNT else str(count), common.age(newest)


def _id(webhook: Webhook) -> str:
    return sanitized(webhook.id, 60)


def _state(webhook: Webhook) -> str:
    return "suspended" if isinstance(webhook.disabled, str) else sanitized(webhook.status, 20)


def _get(options: argparse.Namespace, hub: Hub) -> int:
    webhook = hub.get_webhook(options.id, organization=options.org)
    lines = [
        f"id       {_id(webhook)}",
        f"state    {_state(webhook)}",
        f"url      {'(pull)' if webhook.url is None else sanitized(webhook.url)}",
        f"watched  {sanitized(', '.join(f'{item.type}:{item.name}' for item in webhook.watched), 2000)}",
        f"domains  {sanitized(', '.join(webhook.domains))}",
        f"secret   {'set' if webhook.has_secret else 'none'}",
        f"key      {sanitized(webhook.public_key or '-')}",
        f"last     {common.age(webhook.last_trigger_at)}",
    ]
    return common.print_result(options, webhook, "\n".join(lines))
