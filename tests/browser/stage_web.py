"""A web process of the stage."""

from tests.browser.stage import build

from hubgate.server.worker import web


def main() -> None:
    web.main(build)


if __name__ == "__main__":
    main()
