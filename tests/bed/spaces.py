"""Spaces on a hub that runs them. The process that runs their code is not started: tests store its results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.bed.engines import Engine, settings_for
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.hub.context import Limits
from hubgate.server.resources import Hub
from hubgate.server.spaces import logs_store, store
from hubgate.server.spaces.model import Space, Stage
from hubgate.server.storage.signals import Signal

NAME = "ada/listener"
SPACE = f"/api/spaces/{NAME}"
APP = b"from hubgate.receiver import webhook_endpoint\n"


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


def set_stage(hub: RunningHub, repo_id: str, stage: Stage, message: str = "") -> None:
    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: store.set_stage(tx, repo_id, stage, message, opened.clock()))

    hub.call(work)


def append_log(hub: RunningHub, repo_id: str, kind: str, lines: Sequence[str]) -> None:
    async def work(opened: Hub) -> None:
        async def unit(tx: Any) -> None:
            await logs_store.append(tx, repo_id, kind, [(opened.clock(), line) for line in lines])
            tx.signal(Signal.SPACE_LOGS)

        await opened.db.write(unit)

    hub.call(work)
