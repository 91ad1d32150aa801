"""Becomes bubblewrap. Runs as a program, outside of the sandbox: `python -I -S launch.py DESCRIPTOR`.

The descriptor has the JSON object that `command.py` writes. This cannot be done between fork and exec of the hub's
process, which has threads.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
# Bubblewrap looks up the files of a sandbox as the Space's user, who may not enter the hub's folders. They are mounted
# here, in a mount namespace that only this process has.
STAGE = "/tmp"  # noqa: S108

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None) -> None:
    texts = [text.encode() if text is not None else None for text in (source, target, kind, options)]
    check(libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def stage(binds: list[str]) -> None:
    check(libc.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE, None)
    # Opened first: the stage may hide them.
    sources = [os.open(path, os.O_PATH) for path in binds]
    mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m")
    for number, source in enumerate(sources):
        place = f"{STAGE}/{number}"
        if Path(f"/proc/self/fd/{source}").is_dir():
            Path(place).mkdir()
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        mount(f"/proc/self/fd/{source}", place, None, MS_BIND | MS_REC, None)
        os.close(source)


def main() -> None:
    descriptor = int(sys.argv[1])
    with os.fdopen(descriptor) as file:
        spec = json.load(file)
    for path in spec["groups"]:
        Path(path).write_text(str(os.getpid()))
    # 1 also keeps the kernel from starting the machine's crash handler, as root; 0 does not.
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    # Also for files that a sandbox gets open, outside of its own file systems.
    resource.setrlimit(resource.RLIMIT_FSIZE, (spec["file_bytes"], spec["file_bytes"]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (spec["files"], spec["files"]))
    if spec["user"] is not None:
        stage(spec["binds"])
        os.setgroups([])
        os.setresgid(spec["user"], spec["user"], spec["user"])
        os.setresuid(spec["user"], spec["user"], spec["user"])
    # After the change of user, which resets it.
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != spec["parent"]:
        os._exit(1)
    os.umask(0o022)
    os.execve(spec["command"][0], spec["command"], {})  # noqa: S606


if __name__ == "__main__":
    main()
