"""`/tree` and `/paths-info`: the files of a repo, page by page."""

import re
from pathlib import Path
from typing import Any

import httpx
import pygit2
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_large, send_lines
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

TREE = "/api/models/ada/tiny/tree"
INFO = "/api/models/ada/tiny/paths-info/main"


def pages(client: httpx.Client, address: str) -> list[list[dict[str, Any]]]:
    """Follows links as the strictest client does."""
    found = []
    while address:
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
        link = answer.headers.get("link", "")
        match = re.fullmatch(r'<(https?://[^>]+)>; rel="next"', link)
        assert bool(match) == bool(link)
        address = match[1] if match else ""
    return found


def test_tree_lists_folders_files_and_other_entries(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.txt": b"one", "deep/er/b.txt": b"two", "deep/é?.txt": b""})
        root = {entry["path"]: entry for entry in ada.get(f"{TREE}/main").json()}
        assert set(root) == {".gitattributes", "a.txt", "deep"}
        assert root["a.txt"] == {"type": "file", "path": "a.txt", "size": 3, "oid": root["a.txt"]["oid"]}
        assert root["deep"] == {"type": "directory", "path": "deep", "size": 0, "oid": root["deep"]["oid"]}
        for address in ("deep", "deep/", "/deep"):
            assert [one["path"] for one in ada.get(f"{TREE}/main/{address}").json()] == ["deep/er", "deep/é?.txt"]
        for address in ("deep%2Fer", "deep/er"):
            assert [one["path"] for one in ada.get(f"{TREE}/main/{address}").json()] == ["deep/er/b.txt"]
        below = ada.get(f"{TREE}/main/deep?recursive=True").json()
        assert [one["path"] for one in below] == ["deep/er", "deep/er/b.txt", "deep/é?.txt"]
        for missing in ("nothing", "a.txt", "a.txt/x", "deep/%2e%2e", "deep//er", "%2e", ".git"):
            refused = ada.get(f"{TREE}/main/{missing}")
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "EntryNotFound"), missing
            assert refused.json()["error"] == refused.headers["x-error-message"]
        refused = ada.get(f"{TREE}/nowhere")
        assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound")
        for asked in ("limit=0", "limit=x", "cursor=x", "limit=-1"):
            assert ada.get(f"{TREE}/main?{asked}").status_code == 400


def test_pages_include_the_last_commit_of_each_entry(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        first = create_commit(ada, "ada/tiny", {f"f{number:02}": b"x" for number in range(60)}, summary="Many")
        second = create_commit(ada, "ada/tiny", {"f07": b"y", "dir/f": b"z"}, summary="Few\n\nmore")
        found = pages(ada, f"{TREE}/main?expand=true&recursive=1")
        assert [len(page) for page in found] == [50, 13], "with expand there are 50 to a page"
        by_path = {entry["path"]: entry["lastCommit"] for page in found for entry in page}
        assert by_path["f07"]["id"] == by_path["dir"]["id"] == by_path["dir/f"]["id"] == second
        assert by_path["f08"]["id"] == first
        assert by_path["f07"]["title"] == "Few"
        assert by_path["f07"]["date"].endswith("Z")
        assert "lastCommit" not in ada.get(f"{TREE}/main").json()[0]
        asked = ada.post(INFO, data={"paths": ["f07", "f08", "none"], "expand": "True"}).json()
        assert [(one["path"], one["lastCommit"]["id"]) for one in asked] == [("f07", second), ("f08", first)]


def test_page_continues_where_the_last_one_ended(hub: RunningHub) -> None:
    """In git's order a folder sorts as if its name ended in a slash: a.b, a/, a0."""
    names = ["a.b/x", "a/x", "a/y/z", "a0", "b", "b-c", "b0/q"]
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", dict.fromkeys(names, b""))
        whole = [one["path"] for one in ada.get(f"{TREE}/main?recursive=true").json()]
        for limit in (1, 2, 3, 4):
            found = pages(ada, f"{TREE}/main?recursive=true&limit={limit}")
            assert [one["path"] for page in found for one in page] == whole
        # The entry named by the cursor was deleted before the next page: nothing else is lost.
        for gone, left in (("a/x", ["a/y", "a/y/z", "a0", "b"]), ("a", ["a0", "b"])):
            first = ada.get(f"{TREE}/main?recursive=true&limit={whole.index('a/x') + 1}")
            (address,) = re.findall("<(.*)>", first.headers["link"])
            create_commit(ada, "ada/tiny", {}, delete=[gone])
            after = [one["path"] for one in ada.get(address).json()]
            assert after[: len(left)] == left
            create_commit(ada, "ada/tiny", {"a/x": b"", "a/y/z": b""})


def test_paths_info_accepts_form_and_json(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.txt": b"one", "deep/b.txt": b"two"})
        wanted = ["a.txt", "deep", "deep/b.txt", "nothing", "../a.txt", "a.txt/", "", "/"]
        by_form, by_json = ada.post(INFO, data={"paths": wanted}), ada.post(INFO, json={"paths": wanted})
        assert [one["path"] for one in by_form.json()] == ["a.txt", "deep", "deep/b.txt"]
        assert by_form.json() == by_json.json()
        assert ada.post(INFO, json={"paths": "a.txt"}).json()[0]["size"] == 3
        assert ada.post(INFO, json={"paths": ["nothing"]}).json() == []
        many = [f"none{number}" for number in range(2000)]
        assert ada.post(INFO, data={"paths": many}).json() == []
        assert ada.post(INFO, json={"paths": many}).json() == []
        for more in ({"data": {"paths": [*many, "x"]}}, {"json": {"paths": [*many, "x"]}}):
            assert ada.post(INFO, **more).status_code == 400
        for bad in ({"json": {}}, {"json": {"paths": 1}}, {"content": b"[" * 100_000}):
            assert ada.post(INFO, **bad).status_code in (400, 422)


def test_gated_repo_hides_hashes_of_large_files(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        content = b"\0weights"
        oid = send_large(ada, "ada/tiny", content)
        value = {"path": "w.bin", "algo": "sha256", "oid": oid, "size": len(content)}
        assert send_lines(ada, "ada/tiny", ("lfsFile", value)).status_code == 200
        assert ada.put("/api/models/ada/tiny/settings", json={"gated": "auto"}).status_code == 200
        shown = [f"{TREE}/main?recursive=1", "/api/models/ada/tiny?blobs=true"]
        assert all(oid in ada.get(address).text for address in shown)
        for address in shown:
            answer = anyone.get(address)
            assert answer.status_code == 200
            assert "w.bin" in answer.text
            assert oid not in answer.text, address
        with api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
            asked = {"files": [{"path": "w.bin", "size": len(content), "sample": ""}]}
            answer = bob.post("/api/models/ada/tiny/preupload/main?create_pr=1", json=asked)
            assert answer.status_code == 200
            assert "oid" not in answer.json()["files"][0]


def test_a_hundred_thousand_files_can_be_listed(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        made = create_repo(ada, "tiny")
        sha = _many_files(hub, made["id"], 100_000)
        assert ada.post("/api/models/ada/tiny/branch/many", json={"startingPoint": sha}).status_code == 200
        first = ada.get(f"{TREE}/many")
        assert len(first.json()) == 1000
        (address,) = re.findall("<(.*)>", first.headers["link"])
        assert ada.get(address).json()[0]["path"] == "f001000"
        assert len(ada.get("/api/models/ada/tiny/revision/many").json()["siblings"]) == 100_000
        # A commit on top, which does not touch the other files.
        create_commit(ada, "ada/tiny", {"f050000": b"changed", "new": b""}, rev="many")
        assert ada.get("/ada/tiny/resolve/many/f050000").content == b"changed"
        assert len(paths_in(ada, "ada/tiny")) == 0
        assert head_of(ada, "ada/tiny", "many") != sha


def _many_files(hub: RunningHub, repo_id: str, count: int) -> str:
    """A commit with that many files, added to the repo as by a push."""
    folder: Path = hub.settings.data_dir / "repos" / repo_id[-2:] / f"{repo_id}.git"
    repo = pygit2.Repository(str(folder))
    blob, builder = repo.create_blob(b"x"), repo.TreeBuilder()
    for number in range(count):
        builder.insert(f"f{number:06}", blob, pygit2.enums.FileMode.BLOB)
    who = pygit2.Signature("Ada", "ada@example.org", 1_700_000_000, 0)
    return str(repo.create_commit(None, who, who, "Many", builder.write(), []))
