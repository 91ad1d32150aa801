"""Objects written to a repo's folder directly, as an older version or a copied folder may have left them."""

from collections.abc import Mapping, Sequence

import httpx
import pygit2
from pygit2.enums import ObjectType
from tests.bed import packs
from tests.bed.running_hub import RunningHub

_TYPES = {packs.COMMIT: ObjectType.COMMIT, packs.TREE: ObjectType.TREE, packs.BLOB: ObjectType.BLOB}


def write_objects(hub: RunningHub, client: httpx.Client, repo: str, objects: Sequence[packs.Object]) -> None:
    repo_id = client.get(f"/api/models/{repo}").json()["_id"]
    opened = pygit2.Repository(str(hub.settings.data_dir / "repos" / repo_id[-2:] / f"{repo_id}.git"))
    for item in objects:
        opened.write(_TYPES[item.type], item.content)


def branch_with(
    hub: RunningHub, client: httpx.Client, repo: str, files: Mapping[str | bytes, bytes], branch: str
) -> str:
    """Create a branch with a single commit of these files, whose names are not validated; the commit's id."""
    root, objects = _tree({_raw(path): content for path, content in files.items()})
    head = packs.commit(root)
    write_objects(hub, client, repo, [*objects, root, head])
    # The refs are in the database, so the branch itself is created over HTTP.
    created = client.post(f"/api/models/{repo}/branch/{branch}", json={"startingPoint": head.sha})
    assert created.status_code == 200, created.text
    return head.sha


def _raw(path: str | bytes) -> bytes:
    return path.encode() if isinstance(path, str) else path


def _tree(files: Mapping[bytes, bytes]) -> tuple[packs.Object, list[packs.Object]]:
    """The tree, and all objects below it."""
    below: list[packs.Object] = []
    entries: list[tuple[str, bytes, packs.Object]] = []
    folders: dict[bytes, dict[bytes, bytes]] = {}
    for path, content in files.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            folders.setdefault(name, {})[rest] = content
        else:
            entries.append(("100644", name, packs.blob(content)))
            below.append(entries[-1][2])
    for name, inside in folders.items():
        folder, objects = _tree(inside)
        entries.append(("40000", name, folder))
        below += [*objects, folder]
    # Git sorts a folder as if its name ended in a slash.
    entries.sort(key=lambda entry: entry[1] + (b"/" if entry[0] == "40000" else b""))
    return packs.tree(*entries), below
