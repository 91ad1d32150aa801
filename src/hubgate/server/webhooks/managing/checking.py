"""What may be a webhook's address, secret, domains and watched things."""

import re
from collections.abc import Collection, Sequence

from hubgate.server.egress.client import Egress
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.webhooks.model import (
    DOMAINS,
    LONGEST_OVERLAP,
    LONGEST_SECRET,
    MOST_WATCHED,
    OWNER_TYPES,
    WATCHABLE,
    Watch,
)
from hubgate.server.webhooks.signing import hmac_key

# Printable ASCII: it travels in a header (attacks W15, W16).
_SECRET = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")
_OWNER = re.compile(r"[\w.-]{1,96}\Z", re.ASCII)
_REPO = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}\Z", re.ASCII)


class Mend(FieldErrors):
    """A field of a webhook that cannot stay as it was sent. Programs are told its name with it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__({field: sentence})
        self.message = f"{field}: {sentence}"


def check_url(url: str, egress: Egress) -> str:
    """Its host is not looked up: where it leads is judged at each delivery."""
    try:
        egress.check(url)
    except Unprocessable as error:
        raise Mend("url", error.message) from None
    return url


def check_secret(secret: str) -> str:
    if len(secret) > LONGEST_SECRET or not _SECRET.match(secret):
        raise Mend("secret", f"A secret is 1 to {LONGEST_SECRET} printable ASCII characters, no space at either end.")
    if not hmac_key(secret):
        # Whoever knew that could sign anything.
        raise Mend("secret", "After whsec_ comes a key in base64.")
    return secret


def check_overlap(seconds: int) -> int:
    if not 0 <= seconds <= LONGEST_OVERLAP:
        raise Mend("overlapSeconds", f"0 to {LONGEST_OVERLAP:,}.")
    return seconds


def check_domains(domains: Collection[str]) -> str:
    unknown = next((name for name in domains if name not in DOMAINS), None)
    if unknown is not None or not domains:
        raise Mend("domains", f"Choose one or both of {' and '.join(DOMAINS)}.")
    return " ".join(name for name in DOMAINS if name in domains)


def check_watched(watched: Sequence[tuple[str, str]]) -> list[Watch]:
    """As (type, name). Nobody need own them, nor need they exist."""
    if not watched:
        raise Mend("watched", "Name at least one user, organization or repo.")
    if len(watched) > MOST_WATCHED:
        raise Mend("watched", f"Watch at most {MOST_WATCHED}.")
    found: dict[tuple[str, str], Watch] = {}
    for kind, name in watched:
        if kind not in WATCHABLE:
            raise Mend("watched", f"A type is one of {', '.join(WATCHABLE)}.")
        shape = _OWNER if kind in OWNER_TYPES else _REPO
        if not shape.match(name):
            example = "ada" if kind in OWNER_TYPES else "ada/tiny"
            raise Mend("watched", f"The name of a {kind} looks like {example}.")
        watch = Watch(kind, name)
        found.setdefault((kind, watch.key), watch)
    return list(found.values())
