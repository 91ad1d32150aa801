"""Metrics about Spaces, set by the background process of a hub with metrics, or by web processes without one."""

from hubgate.server.spaces import store
from hubgate.server.spaces.model import SERVING, Stage
from hubgate.server.storage.database import Database

_STARTING = (Stage.BUILDING, Stage.APP_STARTING)
_FAILED = (Stage.CONFIG_ERROR, Stage.BUILD_ERROR, Stage.RUNTIME_ERROR)


async def read_gauges(db: Database) -> dict[str, float]:
    found = await db.read_long(store.totals)
    return {
        "hubgate_spaces_running": sum(found.stages.get(stage.value, 0) for stage in SERVING),
        "hubgate_spaces_starting": sum(found.stages.get(stage.value, 0) for stage in _STARTING),
        "hubgate_spaces_sleeping": found.stages.get(Stage.SLEEPING.value, 0),
        "hubgate_spaces_failed": sum(found.stages.get(stage.value, 0) for stage in _FAILED),
        "hubgate_spaces_memory_bytes": found.memory,
        "hubgate_spaces_requests_waiting": found.requests,
    }
