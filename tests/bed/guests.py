"""Ada's public repo ada/tiny, and Eve, who may not write to it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.bed.engines import Engine, settings_for
from tests.bed.git import Work, cloned
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import commit, make_repo
from tests.bed.running import RunningHub, running

from hubgate.server.accounts.model import User
from hubgate.server.hub.limits import Limits
from hubgate.server.hub.repos.housekeeping import Housekeeping
from hubgate.server.opened import Hub

REPO = "ada/tiny"
API = f"/api/models/{REPO}"


@dataclass(frozen=True)
class Guests:
    hub: RunningHub
    folder: Path
    ada: httpx.Client
    eve: httpx.Client
    ada_user: User
    eve_user: User
    ada_token: str
    eve_token: str

    @property
    def objects(self) -> set[Path]:
        """All that git and the store of large files have, whoever can reach it."""
        data = self.hub.settings.data_dir
        found = [*(data / "repos").glob("??/*.git/objects/**/*"), *(data / "lfs").glob("??/??/*")]
        return {path for path in found if path.is_file()}

    def propose(self, files: dict[str, bytes], *, by: httpx.Client | None = None, repo: str = REPO) -> httpx.Response:
        """A commit that opens a pull request, by Eve unless another is given."""
        return commit(by or self.eve, repo, files, query="?create_pr=1")

    def proposed(self, files: dict[str, bytes]) -> tuple[int, str]:
        """The number of Eve's new pull request, and its commit."""
        answer = self.propose(files)
        assert answer.status_code == 200, answer.text
        said = answer.json()
        return int(said["pullRequestUrl"].rpartition("/")[2]), said["commitOid"]

    def set_status(self, num: int, status: str, *, by: httpx.Client | None = None) -> httpx.Response:
        return (by or self.ada).post(f"{API}/discussions/{num}/status", json={"status": status})

    def remove(self, num: int, *, by: httpx.Client | None = None) -> httpx.Response:
        return (by or self.ada).delete(f"{API}/discussions/{num}")

    def refs(self) -> dict[str, str]:
        said = self.ada.get(f"{API}/refs?include_prs=1").json()
        return {ref["ref"]: ref["targetCommit"] for kind in said.values() for ref in kind}

    def storage(self) -> tuple[int, int]:
        """Of the repo, as its own page and as the list of Ada's repos say."""
        (listed,) = self.ada.get("/api/settings/repositories").json()
        return self.ada.get(API).json()["usedStorage"], listed["storage"]

    def tidy(self) -> None:
        async def work(opened: Hub) -> None:
            while await Housekeeping(opened.repos).step():
                continue

        self.hub.call(work)

    def batch(self, by: httpx.Client, *objects: dict[str, Any]) -> httpx.Response:
        asked = {"operation": "upload", "transfers": ["basic", "multipart"], "objects": list(objects)}
        return by.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked)

    def clone(self, name: str, token: str | None = None) -> Work:
        """By Eve, unless another's token is given."""
        return cloned(self.hub, REPO, self.folder / name, token or self.eve_token)


@contextmanager
def guests(engine: Engine, folder: Path, limits: Limits | None = None, **settings: str) -> Iterator[Guests]:
    given = settings_for(engine.fresh_url(), folder / "data", **settings)
    with running(given, limits=limits) as hub, ExitStack() as stack:
        ada_user, eve_user = make_user(hub, "ada"), make_user(hub, "eve")
        ada_token, eve_token = make_token(hub, ada_user), make_token(hub, eve_user)
        ada, eve = (stack.enter_context(api(hub, token)) for token in (ada_token, eve_token))
        make_repo(ada, "tiny")
        yield Guests(hub, folder, ada, eve, ada_user, eve_user, ada_token, eve_token)
