"""Queries on the text index (`database.TextIndex`): tokens that a document must have, and must not have."""

from msgspec import Struct

# The sections of documents. Each token is stored with the mark of its section in front, so that a section is searched
# as if it had an index of its own.
MARKS = {"repo": "r", "discussion": "d", "account": "a", "collection": "c"}


class Term(Struct, frozen=True):
    """A token; with `is_prefix`, any token that begins with it. Tokens consist of letters, digits and `~.=#:`."""

    token: str
    is_prefix: bool = False


AnyOf = tuple[Term, ...]
AllOf = tuple[AnyOf, ...]


class Access(Struct, frozen=True):
    """The documents that a caller may see: those with the token `public`, and those with any of `private`, of which
    there may be hundreds.
    """

    public: str
    private: tuple[str, ...] = ()


class TextQuery(Struct, frozen=True):
    """Documents of a section that match every group of `all_of`, but not every group of one of `none_of`."""

    section: str
    all_of: AllOf
    none_of: tuple[AllOf, ...] = ()
    # None if it does not matter who sees them.
    access: Access | None = None

    @property
    def mark(self) -> str:
        return MARKS[self.section]


def marked(section: str, tokens: str) -> str:
    """Tokens, separated by spaces, as they are stored."""
    mark = MARKS[section]
    return " ".join(f"{mark}{token}" for token in tokens.split())
