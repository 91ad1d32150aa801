"""Files and cards are cached in memory by commit. What a request may read is still decided for each request, also after
a change by another hub on the same database and folder.
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, send_lines
from tests.bed.running_hub import run_hub

pytestmark = pytest.mark.one_engine

FILE = "/ada/tiny/resolve/main/a.txt"
REPO = "/api/models/ada/tiny"


@pytest.fixture
def clients(engine: Engine, tmp_path: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """A visitor of one hub, who has downloaded `FILE` and therefore filled its cache, and the owner at the other."""
    settings = settings_for(engine.fresh_url(), tmp_path)
    with (
        run_hub(settings) as first,
        run_hub(settings) as second,
        api(first) as visitor,
        api(second, create_token(second, create_user(second, "ada"))) as owner,
    ):
        create_repo(owner, "tiny")
        create_commit(owner, "ada/tiny", {"a.txt": b"one"})
        for _ in range(2):
            assert visitor.get(FILE).content == b"one"
        yield visitor, owner


def test_cached_file_of_a_repo_made_private_is_hidden(clients: tuple[httpx.Client, httpx.Client]) -> None:
    visitor, owner = clients
    at_commit = f"/ada/tiny/resolve/{head_of(owner, 'ada/tiny')}/a.txt"
    assert visitor.get(at_commit).content == b"one"
    assert owner.put(f"{REPO}/settings", json={"private": True}).status_code == 200
    for address in (FILE, at_commit, FILE.replace("resolve", "raw")):
        assert visitor.get(address).status_code == 401
        assert owner.get(address).content == b"one"
    assert owner.put(f"{REPO}/settings", json={"private": False, "gated": "manual"}).status_code == 200
    assert visitor.get(FILE).headers["x-error-code"] == "GatedRepo"


def test_cached_file_of_a_deleted_repo_is_not_served_under_the_same_name(
    clients: tuple[httpx.Client, httpx.Client],
) -> None:
    visitor, owner = clients
    old = head_of(owner, "ada/tiny")
    assert owner.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
    assert visitor.get(FILE).status_code == 401
    create_repo(owner, "tiny")
    assert visitor.get(FILE).headers["x-error-code"] == "EntryNotFound"
    assert visitor.get(f"/ada/tiny/resolve/{old}/a.txt").headers["x-error-code"] == "RevisionNotFound"
    create_commit(owner, "ada/tiny", {"a.txt": b"two"})
    assert visitor.get(FILE).content == b"two"


def test_cached_file_is_replaced_when_the_branch_moves(clients: tuple[httpx.Client, httpx.Client]) -> None:
    visitor, owner = clients
    before = visitor.get(FILE).headers
    assert owner.post(f"{REPO}/branch/old", json={}).status_code == 200
    create_commit(owner, "ada/tiny", {"a.txt": b"two"})
    got = visitor.get(FILE)
    assert (got.content, got.headers["x-repo-commit"]) == (b"two", head_of(owner, "ada/tiny"))
    assert got.headers["etag"] != before["etag"]
    # The history is replaced by one commit with the same files.
    assert owner.post(f"{REPO}/super-squash/main", json={}).status_code == 200
    got = visitor.get(FILE)
    assert (got.content, got.headers["x-repo-commit"]) == (b"two", head_of(owner, "ada/tiny"))
    # A branch named like the beginning of a path takes precedence, cached or not.
    assert owner.post(f"{REPO}/branch/main%2Fa.txt", json={}).status_code in (404, 409, 422)
    assert visitor.get(FILE.replace("main", "old")).content == b"one"
    assert owner.delete(f"{REPO}/branch/old").status_code == 200
    assert visitor.get(FILE.replace("main", "old")).headers["x-error-code"] == "RevisionNotFound"


def card_tags(client: httpx.Client) -> set[str]:
    return set(client.get(REPO).json()["tags"])


def upload_mode(client: httpx.Client, path: str) -> str:
    body = {"files": [{"path": path, "size": 10, "sample": ""}]}
    mode: str = client.post(f"{REPO}/preupload/main", json=body).json()["files"][0]["uploadMode"]
    return mode


@pytest.mark.parametrize(
    ("key", "path"), [("deletedFile", "README.md"), ("deletedEntry", "README.md"), ("file", "README.md/x.txt")]
)
def test_commit_that_removes_the_cached_readme_empties_the_card(
    clients: tuple[httpx.Client, httpx.Client], key: str, path: str
) -> None:
    _, owner = clients
    create_commit(owner, "ada/tiny", {"README.md": b"---\ntags:\n- shiny\n---\n"})
    create_commit(owner, "ada/tiny", {"b.txt": b"unrelated"})
    assert "shiny" in card_tags(owner)
    lines = [(key, {"path": path, "content": "text", "encoding": "utf-8"})]
    if key == "file":
        lines.insert(0, ("deletedFile", {"path": "README.md"}))
    sent = send_lines(owner, "ada/tiny", *lines)
    assert sent.status_code == 200, sent.text
    assert "shiny" not in card_tags(owner)
    create_commit(owner, "ada/tiny", {"b.txt": b"unrelated again"})
    assert "shiny" not in card_tags(owner)


def test_commit_that_changes_cached_rules_is_followed(clients: tuple[httpx.Client, httpx.Client]) -> None:
    _, owner = clients
    create_commit(owner, "ada/tiny", {"data/.gitattributes": b"*.dat filter=lfs diff=lfs merge=lfs -text\n"})
    create_commit(owner, "ada/tiny", {"data/b.txt": b"unrelated"})
    assert upload_mode(owner, "data/x.dat") == "lfs"
    assert send_lines(owner, "ada/tiny", ("deletedFolder", {"path": "data"})).status_code == 200
    create_commit(owner, "ada/tiny", {"data/b.txt": b"unrelated"})
    assert upload_mode(owner, "data/x.dat") == "regular"
    # Stored in git, because no rule says otherwise.
    create_commit(owner, "ada/tiny", {"data/x.dat": b"small"})
    assert owner.get("/ada/tiny/raw/main/data/x.dat").content == b"small"
