"""Conversion between a webhook and the form of its settings. Fields are named as in the API."""

import base64
import secrets
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from hubgate.server.egress.client import Egress
from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, WebhookRequest
from hubgate.server.webhooks.management.validation import (
    InvalidField,
    check_domains,
    check_options,
    check_secret,
    check_url,
    check_watched,
)
from hubgate.server.webhooks.model import DOMAINS, WATCHABLE
from hubgate.server.webhooks.options import OPTIONS, Option, OptionValue, default_options

GENERATE, OWN, NONE = "make", "own", "none"
DOMAIN_LABELS = {"repo": "Repos: created, moved, deleted, pushed, settings changed", "discussion": "Discussions"}
_HOUR, _DAY = 60 * 60, 24 * 60 * 60
OVERLAPS = (
    ("0", "None: the old secret expires at once"),
    (str(_HOUR), "1 hour"),
    *((str(days * _DAY), f"{days} day{'s' if days > 1 else ''}") for days in (1, 3, 7)),
)
_NOT_CHOSEN = "“Use this one” was not chosen. Choose it and type the secret again, or leave its field empty."
_EXAMPLE = "Enter one per line, such as user:ada, org:acme, model:acme/tiny or dataset:acme/rows."
_MAX_NAMED, _LONGEST_LINE = 3, 60
_RANDOM_BYTES = 32


class Draft(Struct, frozen=True):
    """The values in the form, valid or not."""

    url: str = ""
    watched: str = ""
    domains: tuple[str, ...] = DOMAINS
    # The text of each option by name.
    options: Mapping[str, str] = field(default_factory=lambda: _texts(default_options()))
    secret_kind: str = GENERATE


def draft_of(stored: StoredWebhook) -> Draft:
    webhook = stored.webhook
    lines = "\n".join(f"{watch.type}:{watch.name}" for watch in stored.watched)
    return Draft(webhook.url or "", lines, tuple(webhook.domains.split()), _texts(webhook.options))


def _texts(options: Mapping[str, OptionValue]) -> dict[str, str]:
    return {option.name: option.text(options[option.name]) for option in OPTIONS}


def parse_draft(form: Fields) -> Draft:
    return Draft(
        form.get("url").strip(),
        form.get("watched").replace("\r\n", "\n"),
        tuple(form.all("domains")),
        {option.name: form.get(option.wire).strip() for option in OPTIONS},
        form.get("secretKind", NONE),
    )


def validate(draft: Draft, egress: Egress, *, pull: bool = False) -> WebhookRequest:
    """Validate the draft. `pull` webhooks need no address. Raises with a message for each invalid field."""
    watched: list[tuple[str, str]] = []

    def read_watched() -> None:
        watched.extend(_watched(draft.watched))
        check_watched(watched)

    def check_address() -> None:
        if draft.url or not pull:
            _required_url(draft.url, egress)

    options: dict[str, OptionValue] = {}

    def read_option(option: Option) -> None:
        try:
            options[option.name] = option.parse(draft.options[option.name])
        except ValueError:
            raise InvalidField(option.wire, "Enter a number.") from None
        check_options({option.name: options[option.name]})

    option_checks = (partial(read_option, option) for option in OPTIONS)
    _check_each(check_address, read_watched, lambda: check_domains(draft.domains), *option_checks)
    return WebhookRequest(url=draft.url or None, watched=watched, domains=draft.domains, options=options)


def validate_new(draft: Draft, given_secret: str, egress: Egress) -> WebhookRequest:
    """Validate the draft of a new webhook."""

    def with_secret(settings: WebhookRequest) -> WebhookRequest:
        return _with_secret(settings, draft.secret_kind, given_secret)

    _check_each(lambda: validate(draft, egress), lambda: with_secret(WebhookRequest()))
    return with_secret(validate(draft, egress))


def new_secret(kind: str, given: str, overlap: str) -> WebhookRequest:
    """Return the request that replaces the secret. A separate form removes it."""
    if overlap not in dict(OVERLAPS):
        raise InvalidField("overlapSeconds", "Choose one from the list.")
    return _with_secret(WebhookRequest(overlap_seconds=int(overlap)), GENERATE if kind == GENERATE else OWN, given)


def generate_secret() -> str:
    """Create a secret in the format of Standard Webhooks, which its libraries accept unchanged."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_RANDOM_BYTES)).decode()


def _with_secret(settings: WebhookRequest, kind: str, given: str) -> WebhookRequest:
    if kind == OWN:
        if not given:
            raise InvalidField("secret", "Enter the secret, or generate one.")
        return replace(settings, secret=check_secret(given))
    if given.strip():
        # The user has probably configured the receiver with it: another secret would go unnoticed until deliveries
        # fail.
        raise InvalidField("secret", _NOT_CHOSEN)
    return replace(settings, secret=generate_secret()) if kind == GENERATE else settings


def _check_each(*checks: Callable[[], object]) -> None:
    """Run all checks and raise their errors together."""
    errors: dict[str, str] = {}
    for check in checks:
        try:
            check()
        except FieldErrors as error:
            errors.update(error.fields)
    if errors:
        raise FieldErrors(errors)


def _required_url(url: str, egress: Egress) -> str:
    if not url:
        raise InvalidField("url", "Enter the address of the receiver.")
    return check_url(url, egress)


def _watched(text: str) -> list[tuple[str, str]]:
    """Parse one watch per line. Raises with every invalid line."""
    found: list[tuple[str, str]] = []
    invalid: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            found.append(_watch(line))
        except InvalidField as error:
            invalid.setdefault(error.fields["watched"], []).append(line[:_LONGEST_LINE])
    if invalid:
        raise InvalidField("watched", " ".join(f"{_join_lines(lines)}: {why}" for why, lines in invalid.items()))
    return found


def _watch(line: str) -> tuple[str, str]:
    """Parse `type:name`, or the path of a repo's address."""
    kind, colon, name = line.partition(":")
    if not colon:
        kind, name = _by_path(line)
    watch = kind.strip().lower(), name.strip()
    if watch[0] not in WATCHABLE:
        raise InvalidField("watched", _EXAMPLE)
    check_watched([watch])
    return watch


def _join_lines(lines: list[str]) -> str:
    more = len(lines) - _MAX_NAMED
    return ", ".join(lines[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _by_path(line: str) -> tuple[str, str]:
    for kind in ("dataset", "space"):
        if line.startswith(f"{kind}s/"):
            return kind, line.removeprefix(f"{kind}s/")
    return ("model", line) if "/" in line else ("", line)
