"""A refused request as it is kept, and what of a request may be kept at all. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from hubgate.server.clock import DAY
from hubgate.server.logs import redacted

KEPT_FOR = 7 * DAY
MOST_OF_APP = 50
LONGEST_VALUE = 500

# Values that tell what an app did and open nothing.
_HARMLESS = frozenset(
    """
    client_id code_challenge_method display grant_type max_age orgIds prompt redirect_uri requested_token_type
    resource response_mode response_type scope subject_token_type token_type_hint
    """.split()  # noqa: SIM905
)
# Of these only that they were there. What is in neither list is counted: a name too can be a secret, sent by mistake.
_NAMED = frozenset(
    """
    audience claims client_assertion client_assertion_type client_secret code code_challenge code_verifier device_code
    id_token_hint login_hint nonce password refresh_token registration request request_uri state subject_token
    token ui_locales user_code username
    """.split()  # noqa: SIM905
)


class Sent(msgspec.Struct, frozen=True, omit_defaults=True):
    """`proof` is how the client named itself: "basic", "body", "both", "id", "other" or nothing. `about` is the
    parameter that the refusal is about, where that is not told by what is registered."""

    proof: str = ""
    values: dict[str, str] = {}
    names: tuple[str, ...] = ()
    others: int = 0
    about: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The order of the fields is that of `store.COLUMNS`."""

    id: str
    client_id: str
    created_at: int
    endpoint: str
    error: str
    description: str
    sent: Sent


def sent_of(pairs: Iterable[tuple[str, str]], proof: str = "", about: str = "") -> Sent:
    values: dict[str, str] = {}
    names: dict[str, None] = {}
    others = 0
    for name, value in pairs:
        if not value:
            # As good as not sent (RFC 6749, section 3.1).
            continue
        if name in _HARMLESS:
            said = _shortened(value)
            values[name] = f"{values[name]} {said}"[:LONGEST_VALUE] if name in values else said
        elif name in _NAMED:
            names[name] = None
        else:
            others += 1
    return Sent(proof, values, tuple(names), others, about if about in _HARMLESS | _NAMED else "")


def _shortened(value: str) -> str:
    """Redacted too: an address or a scope may hold a token that somebody put there by mistake."""
    return redacted(value[:LONGEST_VALUE])


def client_of(pairs: Iterable[tuple[str, str]]) -> str:
    """Whom a request names in its parameters; the first, where it names two."""
    found: Mapping[str, str] = dict(reversed(list(pairs)))
    return found.get("client_id", "")
