"""Ada's public repo ada/tiny, and Eve, who may not write to it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.bed import lean_http
from tests.bed.blocking import run_blocking
from tests.bed.engines import Engine, opened_database, settings_for
from tests.bed.git import WorkingCopy, clone_repo
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server import failpoint
from hubgate.server.accounts.model import User
from hubgate.server.hub.context import Limits
from hubgate.server.hub.repos.housekeeping import Housekeeping
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

REPO = "ada/tiny"
API = f"/api/models/{REPO}"


@dataclass(frozen=True)
class PublicRepo:
    """A hub with Ada's public repo, and the clients and tokens of Ada and Eve."""

    hub: RunningHub
    folder: Path
    ada: httpx.Client
    eve: httpx.Client
    ada_user: User
    eve_user: User
    ada_token: str
    eve_token: str

    @contextmanager
    def another(self, name: str) -> Iterator[httpx.Client]:
        """The client of another user, who may not write to the repo either."""
        with api(self.hub, create_token(self.hub, create_user(self.hub, name))) as client:
            yield client

    @property
    def objects(self) -> set[Path]:
        """All stored git objects and large files, including unreachable ones."""
        data = self.hub.settings.data_dir
        found = [*(data / "repos").glob("??/*.git/objects/**/*"), *(data / "lfs").glob("??/??/*")]
        return {path for path in found if path.is_file()}

    def propose(self, files: dict[str, bytes], *, by: httpx.Client | None = None, repo: str = REPO) -> httpx.Response:
        """Commit with `create_pr`, as Eve unless `by` is given."""
        return send_commit(by or self.eve, repo, files, query="?create_pr=1")

    def create_pull_request(self, files: dict[str, bytes]) -> tuple[int, str]:
        """The number of Eve's new pull request, and its commit."""
        response = self.propose(files)
        assert response.status_code == 200, response.text
        created = response.json()
        return int(created["pullRequestUrl"].rpartition("/")[2]), created["commitOid"]

    def set_status(self, num: int, status: str, *, by: httpx.Client | None = None) -> httpx.Response:
        return (by or self.ada).post(f"{API}/discussions/{num}/status", json={"status": status})

    def remove(self, num: int, *, by: httpx.Client | None = None) -> httpx.Response:
        return (by or self.ada).delete(f"{API}/discussions/{num}")

    def refs(self) -> dict[str, str]:
        refs = self.ada.get(f"{API}/refs?include_prs=1").json()
        return {ref["ref"]: ref["targetCommit"] for kind in refs.values() for ref in kind}

    def storage(self) -> tuple[int, int]:
        """The storage used by the repo, as reported by the repo and by the list of Ada's repos."""
        (listed,) = self.ada.get("/api/settings/repositories").json()
        return self.ada.get(API).json()["usedStorage"], listed["storage"]

    def run_housekeeping(self) -> None:
        async def work(opened: Hub) -> None:
            housekeeping = Housekeeping(opened.repos)
            while await housekeeping.step():
                continue

        self.hub.call(work)

    def batch(self, by: httpx.Client, *objects: dict[str, Any]) -> httpx.Response:
        body = {"operation": "upload", "transfers": ["basic", "multipart"], "objects": list(objects)}
        return by.post(f"/{REPO}.git/info/lfs/objects/batch", json=body)

    def download(self, by: httpx.Client, oid: str, size: int) -> bytes | None:
        """Download a large file as git-lfs does; None if the repo does not offer it to this user."""
        body = {"operation": "download", "objects": [{"oid": oid, "size": size}]}
        (found,) = by.post(f"/{REPO}.git/info/lfs/objects/batch", json=body).json()["objects"]
        if "error" in found:
            assert found["error"]["code"] == 404, found
            return None
        return lean_http.get(found["actions"]["download"]["href"]).content

    def at_failpoint(self, name: str, sql: str, **given: str) -> None:
        """Run a statement once, when the hub reaches the failpoint."""

        async def work() -> None:
            async with opened_database(self.hub.settings.database_url) as db:
                await db.write(lambda tx: tx.exec(sql, given))

        def act() -> None:
            del failpoint.armed[name]
            run_blocking(work())

        # The event loop is blocked at the failpoint, so a background write ("last used") that has begun would never end
        # and would keep SQLite locked. After this write none is left.
        self.hub.call(lambda opened: opened.db.write(_nothing))
        failpoint.armed[name] = act

    def clone(self, name: str, token: str | None = None) -> WorkingCopy:
        """Clone the repo, as Eve unless another token is given."""
        return clone_repo(self.hub, REPO, self.folder / name, token or self.eve_token)


async def _nothing(_: Tx) -> None:
    pass


@contextmanager
def hub_with_public_repo(
    engine: Engine, folder: Path, limits: Limits | None = None, **settings: str
) -> Iterator[PublicRepo]:
    given = settings_for(engine.fresh_url(), folder / "data", **settings)
    with run_hub(given, limits=limits) as hub, ExitStack() as stack:
        ada_user, eve_user = create_user(hub, "ada"), create_user(hub, "eve")
        ada_token, eve_token = create_token(hub, ada_user), create_token(hub, eve_user)
        ada, eve = (stack.enter_context(api(hub, token)) for token in (ada_token, eve_token))
        create_repo(ada, "tiny")
        yield PublicRepo(hub, folder, ada, eve, ada_user, eve_user, ada_token, eve_token)
