"""A web process of the test build."""

from tests.bed.testbuild import arm_failpoints, build

from hubgate.server.worker.web import main

if __name__ == "__main__":
    arm_failpoints()
    main(build)
