"""A web process of the test build."""

from tests.bed.failpoints import arm_failpoints
from tests.bed.testbuild import build

from hubgate.server.worker.web import main

if __name__ == "__main__":
    arm_failpoints()
    main(build)
