"""Filters on the audit log, such as `author:ada type:org.add_user app:CLIENT_ID` and words of the message. Pure."""

from msgspec import Struct

from hubgate.server.errors import Unprocessable

KEYS = ("app", "author", "ip", "type")
MAX_TERMS = 8
LONGEST_FILTER = 500


class Term(Struct, frozen=True):
    """A term such as `author:ada`; for a word of the message, `key` is empty."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}:{self.value}" if self.key else self.value


class Filter(Struct, frozen=True):
    """A filter: terms with the same key are combined with OR, everything else with AND."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))

    def without(self, term: Term) -> "Filter":
        return Filter(tuple(other for other in self.terms if other != term))


def parse_filter(q: str) -> Filter:
    if len(q) > LONGEST_FILTER:
        raise Unprocessable(f"A filter may have at most {LONGEST_FILTER} characters.")
    terms = tuple(dict.fromkeys(map(_term, q.split())))
    if len(terms) > MAX_TERMS:
        raise Unprocessable(f"A filter may have at most {MAX_TERMS} parts.")
    return Filter(terms)


def _term(text: str) -> Term:
    key, colon, value = text.partition(":")
    if not colon or key.lower() not in KEYS:
        return Term("", text)
    if not value:
        raise Unprocessable(f'Write the value right after "{key.lower()}:", without a space.')
    return Term(key.lower(), value)
