"""Validation of a webhook's URL, secret, domains, options and watched names."""

import re
from collections.abc import Collection, Mapping, Sequence

from hubgate.server.egress.client import Egress
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.webhooks.model import (
    DOMAINS,
    LONGEST_OVERLAP,
    LONGEST_SECRET,
    MAX_WATCHED,
    OWNER_TYPES,
    WATCHABLE,
    Watch,
)
from hubgate.server.webhooks.options import OPTIONS, OptionValue
from hubgate.server.webhooks.signing import hmac_key

# Printable ASCII, because the secret is sent in a header (attacks W15, W16).
_SECRET = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")
_OWNER = re.compile(r"[\w.-]{1,96}\Z", re.ASCII)
_REPO = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}\Z", re.ASCII)


class InvalidField(FieldErrors):
    """An invalid field of a webhook. The message for API clients starts with the name of the field."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__({field: problem})
        self.message = f"{field}: {problem}"


def check_url(url: str, egress: Egress) -> str:
    """Check the URL without resolving its host: the address is checked at each delivery."""
    try:
        egress.check(url)
    except Unprocessable as error:
        raise InvalidField("url", error.message) from None
    return url


def check_secret(secret: str) -> str:
    if len(secret) > LONGEST_SECRET or not _SECRET.match(secret):
        raise InvalidField(
            "secret", f"A secret is 1 to {LONGEST_SECRET} printable ASCII characters, no space at either end."
        )
    if not hmac_key(secret):
        # With an empty key, anyone could sign.
        raise InvalidField("secret", "The key after whsec_ is missing.")
    return secret


def check_overlap(seconds: int) -> int:
    if not 0 <= seconds <= LONGEST_OVERLAP:
        raise InvalidField("overlapSeconds", f"Must be 0 to {LONGEST_OVERLAP:,}.")
    return seconds


def check_domains(domains: Collection[str]) -> str:
    unknown = next((name for name in domains if name not in DOMAINS), None)
    if unknown is not None or not domains:
        raise InvalidField("domains", f"Choose one or both of {' and '.join(DOMAINS)}.")
    return " ".join(name for name in DOMAINS if name in domains)


def check_options(options: Mapping[str, OptionValue]) -> Mapping[str, OptionValue]:
    """Check options by name; absent ones are not checked."""
    for option in OPTIONS:
        if option.name in options and (problem := option.problem(options[option.name])):
            raise InvalidField(option.wire, problem)
    return options


def check_watched(watched: Sequence[tuple[str, str]]) -> list[Watch]:
    """Check pairs of type and name. The caller need not own the targets, and the targets need not exist."""
    if not watched:
        raise InvalidField("watched", "Name at least one user, organization or repo.")
    if len(watched) > MAX_WATCHED:
        raise InvalidField("watched", f"At most {MAX_WATCHED} names can be watched.")
    found: dict[tuple[str, str], Watch] = {}
    for kind, name in watched:
        if kind not in WATCHABLE:
            raise InvalidField("watched", f"A type is one of {', '.join(WATCHABLE)}.")
        pattern = _OWNER if kind in OWNER_TYPES else _REPO
        if not pattern.match(name):
            example = "ada" if kind in OWNER_TYPES else "ada/tiny"
            raise InvalidField("watched", f"A name of type {kind} looks like {example}.")
        watch = Watch(kind, name)
        found.setdefault((kind, watch.key), watch)
    return list(found.values())
