from pathlib import Path

from tests.bed.git import cloned
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import make_repo
from tests.bed.running import RunningHub


def test_there_and_back(hub: RunningHub, tmp_path: Path) -> None:
    token = make_token(hub, make_user(hub, "ada"))
    with api(hub, token) as client:
        make_repo(client, "tiny")
    work = cloned(hub, "ada/tiny", tmp_path / "one", token)
    head = work.commit("README.md", "# hello\n")
    print(work.git("push", "origin", "main"))
    other = cloned(hub, "ada/tiny.git", tmp_path / "two")
    assert other.head() == head
    assert (other.folder / "README.md").read_text() == "# hello\n"
    print(hub.log)
