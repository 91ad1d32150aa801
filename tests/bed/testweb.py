"""A web process of the test build."""

from tests.bed.failpoints import arm_failpoints
from tests.bed.testbuild import build

from hubgate.server.worker import web


def main() -> None:
    arm_failpoints()
    web.main(build)


if __name__ == "__main__":
    main()
