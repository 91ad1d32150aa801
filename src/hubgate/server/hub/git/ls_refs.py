"""The list of refs in protocol version 2 (gitprotocol-v2, "ls-refs"), answered without the git program.

Every clone and fetch asks for it, and a fetch that finds nothing new asks for nothing else. Only requests in the form
that clients send are answered here, for repos of ordinary size; everything else is left to the git program, which runs
on another CPU and needs less time for long lists.
"""

import re
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

import pygit2
from msgspec import Struct
from pygit2.enums import ObjectType

from hubgate.server.hub.git import pktline
from hubgate.server.hub.git.objects import read_repository
from hubgate.server.jobs.job import checkpoint

# A clone sends 200 bytes.
MAX_MESSAGE_BYTES = 16 * 1024
MAX_REFS = 1_000
_MAX_PREFIXES = 64
# Each tag is read from disk, with every tag that it leads to. A pushed tag may be large, and nested thousands of times.
_MAX_PEELED = 100
_MAX_TAG_BYTES = 64 * 1024
_MAX_NESTED = 10
_HEAD, _DEFAULT_BRANCH = "HEAD", "refs/heads/main"
_CAPABILITY = re.compile(rb"agent=.*|server-option=.*|object-format=sha1", re.DOTALL)
_PREFIX = b"ref-prefix "

Ref = tuple[str, str]


class RefQuery(Struct, frozen=True):
    flags: Collection[bytes]
    # A ref is listed if its name begins with one of them, or if there are none.
    prefixes: tuple[str, ...]

    def includes(self, name: str) -> bool:
        return not self.prefixes or name.startswith(self.prefixes)


async def read_ahead(parts: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """The beginning of a body, all of it if it is short, and an iterator over the whole body."""
    message = b""
    async for part in parts:
        message += part
        if len(message) > MAX_MESSAGE_BYTES:
            break

    async def whole() -> AsyncIterator[bytes]:
        yield message
        async for part in parts:
            yield part

    return message, whole()


def parse(message: bytes) -> RefQuery | None:
    """The request for refs that is the whole message; None for anything else."""
    # git reads a prefix up to a NUL.
    is_ordinary = len(message) <= MAX_MESSAGE_BYTES and b"\0" not in message
    packets = pktline.split(message) if is_ordinary else []
    lengths = [length for length, _ in packets]
    if lengths.count(0) != 1 or lengths[-1] != 0 or lengths.count(1) > 1:
        return None
    lines = [payload.removesuffix(b"\n") for _, payload in packets]
    middle = lengths.index(1) if 1 in lengths else len(lines) - 1
    arguments = lines[middle + 1 : -1]
    prefixes = [line.removeprefix(_PREFIX) for line in arguments if line.startswith(_PREFIX)]
    flags = {line for line in arguments if not line.startswith(_PREFIX)}
    is_known = flags <= {b"peel", b"symrefs", b"unborn"} and all(map(_CAPABILITY.fullmatch, lines[1:middle]))
    if lines[0] != b"command=ls-refs" or not is_known or len(prefixes) > _MAX_PREFIXES:
        return None
    try:
        return RefQuery(flags, tuple(prefix.decode() for prefix in prefixes))
    except UnicodeDecodeError:
        return None


async def answer(folder: Path, refs: Sequence[Ref], query: RefQuery) -> bytes | None:
    """The answer to `query` from the repo's `refs`; None if there are too many refs, or tags too expensive to read."""
    listed = [ref for ref in refs if query.includes(ref[0])]
    # Branches and pull requests are commits; only tags can be objects that name another.
    tags = {sha for name, sha in listed if name.startswith("refs/tags/")} if b"peel" in query.flags else set()
    if len(refs) > MAX_REFS or len(tags) > _MAX_PEELED:
        return None
    peeled = await read_repository(folder, lambda repo: _peeled(repo, tags)) if tags else {}
    if peeled is None:
        return None
    lines = (f"{sha} {name}" + (f" peeled:{peeled[sha]}" if sha in peeled else "") for name, sha in listed)
    return b"".join(pktline.line(f"{line}\n".encode()) for line in chain(_head(refs, query), lines)) + pktline.FLUSH


def _head(refs: Sequence[Ref], query: RefQuery) -> Iterator[str]:
    """HEAD, which refers to the default branch, also while that does not exist."""
    sha = next((sha for name, sha in refs if name == _DEFAULT_BRANCH), None)
    symbolic = b"symrefs" in query.flags
    if query.includes(_HEAD) and (sha is not None or (symbolic and b"unborn" in query.flags)):
        yield f"{sha or 'unborn'} {_HEAD}" + (f" symref-target:{_DEFAULT_BRANCH}" if symbolic else "")


def _peeled(repo: pygit2.Repository, shas: Collection[str]) -> dict[str, str] | None:
    """The objects to which annotated tags lead; None if one is large, nested many times or damaged. Only tags are
    read, since they may lead to a large file.
    """
    found: dict[str, str] = {}
    try:
        for sha in shas:
            target = _target(repo, pygit2.Oid(hex=sha))
            if target is None:
                return None
            if str(target) != sha:
                found[sha] = str(target)
    except (KeyError, ValueError, pygit2.GitError):
        return None
    return found


def _target(repo: pygit2.Repository, at: pygit2.Oid) -> pygit2.Oid | None:
    for _ in range(_MAX_NESTED):
        checkpoint()
        kind, size = repo.odb.read_header(at)
        if kind != ObjectType.TAG:
            return at
        if size > _MAX_TAG_BYTES:
            return None
        at = repo[at].peel(pygit2.Tag).target
    return None
