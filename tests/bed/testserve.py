"""`python -m tests.bed.testserve --port 0 ...` is `hubgate serve` with the routes of the test build."""

import argparse

from tests.bed import testdeliver, testweb

from hubgate.cli import hub_settings
from hubgate.server import logs
from hubgate.server.startup import serve
from hubgate.server.worker.supervisor import Modules


def main() -> None:
    parser = argparse.ArgumentParser()
    hub_settings.add_to(parser)
    logs.configure()
    settings = hub_settings.read(parser.parse_args())
    serve(
        settings,
        lambda ready, _: print(f"ready: {ready.base_url}", flush=True),
        Modules(testweb.__name__, testdeliver.__name__),
    )


if __name__ == "__main__":
    main()
