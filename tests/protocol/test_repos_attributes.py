"""`.gitattributes` as commits leave it: every large file stays announced, or clones would hold pointers instead."""

from functools import partial
from typing import Any

import httpx
from tests.bed.at_once import at_once
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import commit, make_repo, send_large, send_lines
from tests.bed.running import RunningHub

from hubgate.server.hub.commits.attributes import line_for

CONTENT = b"\0large"


def large(path: str, oid: str) -> tuple[str, dict[str, Any]]:
    return "lfsFile", {"path": path, "algo": "sha256", "oid": oid, "size": len(CONTENT)}


def rules(client: httpx.Client, repo: str = "ada/tiny", path: str = ".gitattributes") -> list[str]:
    return client.get(f"/{repo}/resolve/main/{path}").text.splitlines()


def test_commits_at_once_announce_all_their_large_files(hub: RunningHub) -> None:
    """Each adds its line to what the others left, an edit of the user's own among them."""
    with api(hub, make_token(hub, make_user(hub, "ada"))) as ada:
        make_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        names = [f"w{number}.dat" for number in range(12)]
        answers = at_once([partial(send_lines, ada, "ada/tiny", large(name, oid)) for name in names])
        assert [answer.status_code for answer in answers] == [200] * 12
        assert {line_for(name) for name in names} <= set(rules(ada))
        edit = {".gitattributes": b"*.mine filter=lfs\n"}
        more = [partial(send_lines, ada, "ada/tiny", large(f"more/{name}", oid)) for name in names]
        answers = at_once([partial(commit, ada, "ada/tiny", edit), *more])
        assert [answer.status_code for answer in answers] == [200] * 13
        assert rules(ada)[0] == "*.mine filter=lfs"
