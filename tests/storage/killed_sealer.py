"""A process that seals the audit log of Acme and is killed at a failpoint. Arguments: database, failpoint."""

import os
import signal
import sys

from tests.bed.audit_log import ACME, sealer_on
from tests.bed.blocking import run_blocking

from hubgate.server import failpoint
from hubgate.server.clock import system_clock
from hubgate.server.storage.engines import open_database


async def seal(url: str, moment: str) -> None:
    db = await open_database(url)
    failpoint.armed[moment] = lambda: os.kill(os.getpid(), signal.SIGKILL)
    await sealer_on(db, system_clock).seal(ACME)


def main() -> None:
    run_blocking(seal(*sys.argv[1:]))
