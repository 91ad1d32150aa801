"""Checks a file of a shard against the xorbs that the hub stores.

Specification: "Upload protocol: shard formation", "Hashing: file hashes, term verification hashes". The verification
hashes prove that the sender knows the chunks it refers to, not only their place in a xorb. The SHA-256 is not checked
here: it needs the content.
"""

from collections.abc import Callable, Iterator

from msgspec import Struct

from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.invalid import InvalidXet
from hubgate.server.hub.xet.shard import ShardFile, Term
from hubgate.server.hub.xet.tree import ChunkTree
from hubgate.server.hub.xet.xorb_table import XorbTable


class CheckedFile(Struct, frozen=True):
    """A file whose hash, terms and verification hashes agree with the stored xorbs. `sha256` is only claimed.

    `terms` are as the shard has them; `shard.parse_terms` reads them.
    """

    hash: bytes
    sha256: str
    size: int
    terms: bytes


class FileCheck:
    """The check of one file, term by term, so that one table at a time is in memory."""

    def __init__(self, file: ShardFile) -> None:
        if file.sha256 is None:
            raise InvalidXet(f"The file {hash_text(file.hash)} has no SHA-256.")
        if file.verification is None:
            raise InvalidXet(f"The file {hash_text(file.hash)} has no verification hashes.")
        self._file, self._sha256 = file, file.sha256
        self._tree, self._size = ChunkTree(), 0

    def terms(self) -> Iterator[tuple[Term, bytes]]:
        """Each term with its verification hash. Pass each to `add`, in this order."""
        return zip(self._file.terms(), self._file.range_hashes(), strict=True)

    def add(self, term: Term, claimed: bytes, table: XorbTable | None) -> None:
        """Check a term against the table of its xorb; None if the sender may not refer to this xorb."""
        # The same message for a xorb that does not exist and one that the sender may not read.
        if table is None:
            raise InvalidXet(f"The xorb {hash_text(term.xorb)} was not uploaded to this repo.")
        if not table.includes(term.start, term.end):
            raise InvalidXet(f"The xorb {hash_text(term.xorb)} does not have the chunks {term.start} to {term.end}.")
        size = table.size_between(term.start, term.end)
        if size != term.size:
            raise InvalidXet(f"A term of the xorb {hash_text(term.xorb)} has {size} bytes, not {term.size}.")
        if table.range_hash(term.start, term.end) != claimed:
            raise InvalidXet(f"A verification hash of the file {hash_text(self._file.hash)} is wrong.")
        for index in range(term.start, term.end):
            self._tree.add(table.hash_of(index), table.size_of(index))
        self._size += size

    def finish(self) -> CheckedFile:
        """The file, after all of its terms."""
        file, actual = self._file, self._tree.file_hash()
        if actual != file.hash:
            raise InvalidXet(f"The terms are of a file with the hash {hash_text(actual)}, not {hash_text(file.hash)}.")
        return CheckedFile(file.hash, self._sha256, self._size, bytes(file.entries))


def check_file(file: ShardFile, find: Callable[[bytes], XorbTable | None]) -> CheckedFile:
    """Check a file. `find` returns the table of a xorb that the sender may refer to, and None for every other xorb."""
    check = FileCheck(file)
    for term, claimed in check.terms():
        check.add(term, claimed, find(term.xorb))
    return check.finish()
