"""`python -m tests.bed.testserve --port 0 ...` is `hubgate serve` with the routes of the test build.

Like the parent process of the product, this one does not import the app: importing it takes longer than all else that
the parent does.
"""

import argparse

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
        Modules("tests.bed.testweb", "tests.bed.testdeliver"),
    )


if __name__ == "__main__":
    main()
