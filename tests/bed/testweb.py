"""A web process of the test build."""

from tests.bed.failpoints import arm_failpoints
from tests.bed.slow_polls import slow_down_polls
from tests.bed.testbuild import build

from hubgate.server.http.asgi import ASGIApp
from hubgate.server.resources import Hub
from hubgate.server.worker import web


def _build(hub: Hub) -> ASGIApp:
    slow_down_polls(hub.db)
    return build(hub)


def main() -> None:
    arm_failpoints()
    web.main(_build)


if __name__ == "__main__":
    main()
