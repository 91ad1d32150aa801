"""A page of a folder as the web shows it: folders first, then files. Only the entries on the page are read."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from hubgate.server.hub.git.objects import Entry, described, open_repository, tree_of
from hubgate.server.hub.git.trees import TreePosition, folder_at, walk


@dataclass(frozen=True)
class FolderPage:
    entries: list[Entry]
    # Entries in the whole folder.
    total: int


async def folder_page(folder: Path, commit: str, path: str, skip: int, most: int) -> FolderPage | None:
    """A page of a folder; None if the folder does not exist."""

    def work(repo: pygit2.Repository) -> FolderPage | None:
        tree = folder_at(repo, commit, path)
        if tree is None:
            return None
        prefix = f"{path}/" if path else ""
        # A submodule has no content here.
        places = [place for place in walk(repo, tree, prefix, recursive=False) if place.mode != FileMode.COMMIT]
        places.sort(key=lambda place: not place.is_folder)
        shown = (_entry(repo, place) for place in places[skip : skip + most])
        return FolderPage([entry for entry in shown if entry], len(places))

    return await open_repository(folder, work)


async def count_files(folder: Path, commit: str, most: int) -> int:
    """Count the files of a commit, up to `most`."""

    def work(repo: pygit2.Repository) -> int:
        places = walk(repo, tree_of(repo, commit), "", recursive=True)
        return sum(1 for _ in islice((place for place in places if not place.is_folder), most))

    return await open_repository(folder, work)


def _entry(repo: pygit2.Repository, place: TreePosition) -> Entry | None:
    return described(repo, place.path, place.sha, place.mode)
