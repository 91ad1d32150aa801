"""Spaces on a hub that runs them. The process that runs their code is not started: tests store its results."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.bed.engines import Engine, settings_for
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.hub.context import Limits
from hubgate.server.resources import Hub
from hubgate.server.spaces import logs_store, store
from hubgate.server.spaces.hosting import CHANNEL
from hubgate.server.spaces.model import Space, Stage
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.webhooks.tunnels.channel import Receiving
from hubgate.server.webhooks.tunnels.model import AnswerHead, RequestHead, pack, unpack

PROCESS = "test"
NAME = "ada/listener"
SPACE = f"/api/spaces/{NAME}"


@contextmanager
def run_spaces_hub(engine: Engine, folder: Path, limits: Limits | None = None, **more: str) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), folder, spaces_runner="bubblewrap", **more)
    with run_hub(settings, limits=limits or Limits()) as hub:
        yield hub


def create_space(client: httpx.Client, name: str = NAME, sdk: str = "gradio", **more: Any) -> str:
    """Create a Space; its id."""
    created: str = create_repo(client, name, "space", sdk=sdk, **more)["id"]
    return created


def find_space(hub: RunningHub, repo_id: str) -> Space:
    async def work(opened: Hub) -> Space | None:
        return await store.find(opened.db, repo_id)

    found = hub.call(work)
    assert found is not None
    return found


async def store_stage(tx: Tx, repo_id: str, stage: Stage, message: str, now: int) -> None:
    sql = "UPDATE spaces SET stage = :stage, stage_at = :now, message = :message WHERE repo_id = :repo_id"
    await tx.exec(sql, {"repo_id": repo_id, "stage": stage.value, "message": message, "now": now})


def set_stage(hub: RunningHub, repo_id: str, stage: Stage, message: str = "") -> None:
    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: store_stage(tx, repo_id, stage, message, opened.clock()))

    hub.call(work)


def append_log(hub: RunningHub, repo_id: str, kind: str, lines: Sequence[str]) -> None:
    async def work(opened: Hub) -> None:
        async def unit(tx: Any) -> None:
            await logs_store.append(tx, repo_id, kind, [(opened.clock(), line) for line in lines])
            tx.signal(Signal.SPACE_LOGS)

        await opened.db.write(unit)

    hub.call(work)


@dataclass
class ServedSpace:
    """Answers the requests to one Space, in place of its app."""

    status: int = 200
    body: bytes = b'{"ok": true}'
    heads: list[RequestHead] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def serve_space(hub: RunningHub, repo_id: str) -> Iterator[ServedSpace]:
    served = ServedSpace()

    async def start(opened: Hub) -> "asyncio.Task[None]":
        receiving = Receiving(opened.db, opened.clock, opened.secret, PROCESS, CHANNEL)

        async def run() -> None:
            while True:
                for request in await receiving.take():
                    head, body = unpack(request.message, RequestHead)
                    served.heads.append(head)
                    served.bodies.append(body)
                    answer = pack(AnswerHead(request.id, served.status), served.body)
                    await receiving.answer(request.receiver_id, request.id, answer)
                await asyncio.sleep(0.01)

        return asyncio.create_task(run())

    async def stop(_: Hub) -> None:
        task.cancel()

    task = hub.call(start)
    lease_space(hub, repo_id)
    set_stage(hub, repo_id, Stage.RUNNING)
    try:
        yield served
    finally:
        hub.call(stop)


def lease_space(hub: RunningHub, repo_id: str) -> None:
    async def work(opened: Hub) -> None:
        async def unit(tx: Any) -> None:
            await tx.exec(
                "UPDATE spaces SET process = :p, running_version = version WHERE repo_id = :id",
                {"p": PROCESS, "id": repo_id},
            )

        await opened.db.write(unit)

    hub.call(work)
