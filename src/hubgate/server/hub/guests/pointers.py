"""Pointers to large files in git: which files of guests are in the history of a commit or ref."""

import hashlib
from collections.abc import Collection, Sequence
from contextlib import aclosing

from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import program
from hubgate.server.hub.git.objects import pointer_text
from hubgate.server.hub.repos import copied_refs


def pointer_sha(oid: str, size: int) -> str:
    """The id of the canonical LFS pointer to a large file. Guests can only write this form."""
    text = pointer_text(oid, size)
    return hashlib.sha1(f"blob {len(text)}\0".encode() + text, usedforsecurity=False).hexdigest()


async def listed_among(
    repos: Repos, repo_id: str, shas: Collection[str], arguments: Sequence[str], seconds: float
) -> set[str]:
    """Those of `shas` that `git rev-list` prints with these arguments, which may name refs."""
    folder = await copied_refs.refresh(repos, repo_id)
    found_shas, lines_to_find = set[str](), {sha.encode() for sha in shas}
    lines = program.lines(["rev-list", *arguments], folder, b"", seconds)
    async with aclosing(lines):
        async for part in lines:
            found_shas.update(sha.decode() for sha in lines_to_find.intersection(part))
            if len(found_shas) == len(lines_to_find):
                break
    return found_shas
