"""Queries on the text index (`database.TextIndex`): tokens that a document must have, and must not have."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

# Engines look up each token of a query, which takes milliseconds for hundreds of owners of private documents. With more
# than so many, a few matches are read first, and who may see them is checked afterwards.
MAX_PRIVATE_TOKENS = 8
# For each result.
CHECKED_FOR_EACH = 3

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

    @property
    def has_many_owners(self) -> bool:
        return self.access is not None and len(self.access.private) > MAX_PRIVATE_TOKENS

    @property
    def with_few_tokens(self) -> "TextQuery":
        """The query as a single expression, without the access if it has many tokens."""
        if self.access is None or self.has_many_owners:
            return replace(self, access=None)
        visible = tuple(map(Term, (self.access.public, *self.access.private)))
        return replace(self, all_of=(*self.all_of, visible), access=None)

    def visible_among(self, found: Sequence[tuple[int, str, str]]) -> list[tuple[int, str]]:
        """Number and target of those documents that are visible, of found ones with their access."""
        if self.access is None:
            return [(number, target) for number, target, _ in found]
        visible = {f"{self.mark}{token}" for token in (self.access.public, *self.access.private)}
        return [(number, target) for number, target, access in found if not visible.isdisjoint(access.split())]


def marked(section: str, tokens: str) -> str:
    """Tokens, separated by spaces, as they are stored."""
    mark = MARKS[section]
    return " ".join(f"{mark}{token}" for token in tokens.split())
