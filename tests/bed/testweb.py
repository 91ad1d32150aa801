"""A web process of the test build."""

from tests.bed.failpoints import arm_failpoints
from tests.bed.slow_polls import slow_down_polls
from tests.bed.testbuild import build

from hubgate.server.worker import web


def main() -> None:
    arm_failpoints()
    slow_down_polls()
    web.main(build)


if __name__ == "__main__":
    main()
