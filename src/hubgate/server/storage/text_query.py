"""Queries on the text index (`database.TextIndex`): tokens that a document must have, and must not have."""

from msgspec import Struct


class Term(Struct, frozen=True):
    """A token; with `is_prefix`, any token that begins with it. Tokens consist of letters, digits and `~.=#:`."""

    token: str
    is_prefix: bool = False


AnyOf = tuple[Term, ...]
AllOf = tuple[AnyOf, ...]


class TextQuery(Struct, frozen=True):
    """Documents that match every group of `all_of`, but not every group of one of `none_of`."""

    all_of: AllOf
    none_of: tuple[AllOf, ...] = ()
