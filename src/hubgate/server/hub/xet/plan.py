"""Which bytes of which xorbs restore a range of a file.

Specification: "File reconstruction: reconstruction rules, multiple terms per xorb and coalescing". There are two steps,
so that only the tables of xorbs in the range are read from the database: `select` finds the terms, `plan` leaves out
the chunks before and after the range. All ranges here exclude their end.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from hubgate.server.hub.xet.chunk_format import Chunk
from hubgate.server.hub.xet.shard import Term
from hubgate.server.hub.xet.xorb_table import XorbTable

_BLOCK = 1024 * 1024


class Selection(Struct, frozen=True):
    """The terms that contain a range of a file: `length` bytes, after the first `skip` bytes of the first term."""

    terms: tuple[Term, ...]
    skip: int
    length: int

    @property
    def xorbs(self) -> set[bytes]:
        return {term.xorb for term in self.terms}


class Piece(Struct, frozen=True):
    """A term without the chunks outside of the range, and its bytes in the stored xorb."""

    term: Term
    stored_start: int
    stored_end: int


class FetchRange(Struct, frozen=True):
    """Chunks of a xorb that are read at once: their numbers, and their bytes in the stored xorb."""

    start: int
    end: int
    stored_start: int
    stored_end: int


class Plan(Struct, frozen=True):
    """How a range of a file is restored: the pieces in order, then `length` bytes after the first `skip`."""

    pieces: tuple[Piece, ...]
    skip: int
    length: int

    def fetches(self) -> dict[bytes, list[FetchRange]]:
        """What to read from each xorb, in ascending order. Ranges that overlap or touch are one range."""
        found: dict[bytes, list[FetchRange]] = {}
        for piece in sorted(self.pieces, key=lambda piece: (piece.term.start, piece.term.end)):
            ranges = found.setdefault(piece.term.xorb, [])
            start, end, stored_start, stored_end = (
                piece.term.start,
                piece.term.end,
                piece.stored_start,
                piece.stored_end,
            )
            if ranges and start <= ranges[-1].end:
                last = ranges.pop()
                start, stored_start = last.start, last.stored_start
                end, stored_end = max(end, last.end), max(stored_end, last.stored_end)
            ranges.append(FetchRange(start, end, stored_start, stored_end))
        return found


class Window:
    """Cuts a range out of content that is received in parts: `length` bytes after the first `skip`."""

    def __init__(self, skip: int, length: int) -> None:
        self._skip, self.missing = skip, length

    def take(self, part: bytes) -> bytes:
        """The bytes of the next part that are in the range."""
        taken = part[self._skip : self._skip + self.missing]
        self._skip = max(0, self._skip - len(part))
        self.missing -= len(taken)
        return taken

    def take_some(self, chunks: Iterator[Chunk], limit: int = _BLOCK) -> bytes:
        """The bytes of the next chunks that are in the range, until there are `limit`; nothing after the last chunk.

        A chunk of 128 KiB may be stored in 570 bytes: do not decode all chunks of a part that was read at once.
        """
        blocks, size = [], 0
        while size < limit and self.missing and (chunk := next(chunks, None)) is not None:
            blocks.append(self.take(chunk.content))
            size += len(blocks[-1])
        return b"".join(blocks)


def select(terms: Iterable[Term], start: int, end: int) -> Selection | None:
    """The terms with the bytes `start` to `end` of a file, or to its end. None if the file ends at or before `start`.

    An empty file has an empty selection, from its start.
    """
    if not 0 <= start < end:
        raise ValueError(f"bytes {start} to {end}")
    chosen: list[Term] = []
    position = first = 0
    for term in terms:
        if position >= end:
            break
        if position + term.size > start:
            if not chosen:
                first = position
            chosen.append(term)
        position += term.size
    if not chosen:
        return Selection((), 0, 0) if start == position == 0 else None
    return Selection(tuple(chosen), start - first, min(end, position) - start)


def plan(selection: Selection, tables: Mapping[bytes, XorbTable]) -> Plan:
    """The pieces of a selection. `tables` has every xorb of the selection."""
    skip, after, pieces = selection.skip, selection.skip + selection.length, []
    for number, term in enumerate(selection.terms):
        table, start, end = tables[term.xorb], term.start, term.end
        if number == 0:
            while table.size_between(term.start, start + 1) <= selection.skip:
                start += 1
            skip -= table.size_between(term.start, start)
        # `after` counts from the start of this term to the end of the range.
        while end - 1 > start and table.size_between(term.start, end - 1) >= after:
            end -= 1
        after -= term.size
        pieces.append(
            Piece(Term(term.xorb, start, end, table.size_between(start, end)), *table.stored_between(start, end))
        )
    return Plan(tuple(pieces), skip, selection.length)
