"""A rejected request as stored, and which parts of a request may be stored. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from hubgate.server.clock import DAY
from hubgate.server.logs import redacted

RETAINED_FOR = 7 * DAY
MAX_PER_APP = 50
LONGEST_VALUE = 500

# Parameters whose values are stored: useful to the owner, and not secret.
_STORED_VALUES = frozenset(
    """
    client_id code_challenge_method display grant_type max_age orgIds post_logout_redirect_uri prompt redirect_uri
    requested_token_type resource response_mode response_type scope subject_token_type token_type_hint
    """.split()  # noqa: SIM905
)
# Parameters stored by name only. All others are only counted: even a name can be a secret sent by mistake.
_STORED_NAMES = frozenset(
    """
    actor_token audience claims client_assertion client_assertion_type client_secret code code_challenge code_verifier
    device_code id_token_hint login_hint nonce password refresh_token registration request request_uri state
    subject_token token ui_locales user_code username
    """.split()  # noqa: SIM905
)


class SentParameters(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored part of a request. `proof` is the client authentication: "basic", "body", "both", "id", "other" or "".

    `about` is the rejected parameter, if comparing with the registration does not find it.
    """

    proof: str = ""
    values: dict[str, str] = {}
    names: tuple[str, ...] = ()
    others: int = 0
    about: str = ""


class Refusal(msgspec.Struct, frozen=True):
    """A rejected request. The fields are in the order of `store.COLUMNS`."""

    id: str
    client_id: str
    created_at: int
    endpoint: str
    error: str
    description: str
    sent: SentParameters


def sent_parameters(pairs: Iterable[tuple[str, str]], proof: str = "", about: str = "") -> SentParameters:
    values: dict[str, str] = {}
    names: dict[str, None] = {}
    others = 0
    for name, value in pairs:
        if not value:
            # Counts as absent (RFC 6749, section 3.1).
            continue
        if name in _STORED_VALUES:
            text = _safe_value(value)
            values[name] = f"{values[name]} {text}"[:LONGEST_VALUE] if name in values else text
        elif name in _STORED_NAMES:
            names[name] = None
        else:
            others += 1
    return SentParameters(proof, values, tuple(names), others, about if about in _STORED_VALUES | _STORED_NAMES else "")


def _safe_value(value: str) -> str:
    """Truncate and redact: a URI or scope may contain a token by mistake."""
    return redacted(value[:LONGEST_VALUE])


def client_id_of(pairs: Iterable[tuple[str, str]]) -> str:
    """The client_id in the parameters; the first if there are several."""
    found: Mapping[str, str] = dict(reversed(list(pairs)))
    return found.get("client_id", "")
