"""A program that runs an app and prints what belongs to it, for a test that kills it: `dying_hub.py FOLDER`."""

import asyncio
import json
import sys
from pathlib import Path

from tests.spaces.bed import spaces_bed

from hubgate.server.spaces.bubblewrap.running import RunningApp


async def main() -> None:
    async with spaces_bed(Path(sys.argv[1])) as bed:
        running = await bed.serving()
        assert isinstance(running, RunningApp)
        group = running._sandbox.group
        found = {"processes": sorted(group.processes()), "groups": list(map(str, group.paths))}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
