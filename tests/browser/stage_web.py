"""A web process of the stage."""

from tests.browser.stage import build

from hubgate.server.worker.web import main

if __name__ == "__main__":
    main(build)
