"""Spaces of the stage: one that runs, with a log and settings, and one whose build failed."""

from tests.bed.spaces import store_stage

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.hub.repos import creation
from hubgate.server.hub.repos.creation import NewRepo
from hubgate.server.hub.repos.model import Repo, RepoOwner, RepoType
from hubgate.server.resources import Hub
from hubgate.server.spaces import environment, logs_store
from hubgate.server.spaces.environment import Kind, NewSetting
from hubgate.server.spaces.logs_store import BUILD, RUN
from hubgate.server.spaces.model import Stage
from hubgate.server.storage.database import Tx

RUNNING = "/spaces/ada/listener"
FAILED = "/spaces/ada/broken-listener-with-a-name-that-is-quite-long"
_LINES = [
    "Uvicorn running on http://127.0.0.1:7860",
    "POST /webhooks/train 200 in 12 ms",
    "a line without any space that is longer than a phone is wide: " + "x" * 160,
    *(f"POST /webhooks/train 200 in {n} ms" for n in range(30)),
]
_USE = "UPDATE spaces SET process = 'p', used_cpu = 120, used_memory = 84000000, used_processes = 7 WHERE repo_id = :id"


async def add_spaces(hub: Hub, ada: User) -> None:
    listener = await _created(hub, ada, RUNNING.rpartition("/")[2])
    for kind, key, text in (
        (Kind.SECRET, "WEBHOOK_SECRET", "The secret of the webhook on acme/pictures"),
        (Kind.VARIABLE, "MODEL", ""),
    ):
        await environment.put(hub.spaces, listener, NewSetting(kind, key, "acme/vision-tiny", text), SYSTEM)
    await _store(hub, listener, Stage.RUNNING, "", RUN, _LINES)
    broken = await _created(hub, ada, FAILED.rpartition("/")[2])
    message = "A requirement could not be installed: no package is called hubgate-reciever. See the build log."
    await _store(hub, broken, Stage.BUILD_ERROR, message, BUILD, ["ERROR: No matching distribution found"])

    async def run(tx: Tx) -> None:
        await tx.exec(_USE, {"id": listener.id})

    await hub.db.write(run)


async def _created(hub: Hub, ada: User, name: str) -> Repo:
    return await creation.create(
        hub.repos, ada, RepoOwner("user", ada.id, ada.name), NewRepo(RepoType.SPACE, name, sdk="gradio"), SYSTEM
    )


async def _store(hub: Hub, repo: Repo, stage: Stage, message: str, kind: str, lines: list[str]) -> None:
    now = hub.clock()

    async def unit(tx: Tx) -> None:
        await store_stage(tx, repo.id, stage, message, now)
        await logs_store.append(tx, repo.id, kind, [(now, line) for line in lines])

    await hub.db.write(unit)
