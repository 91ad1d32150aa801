"""Whether this machine can run sandboxes, and what to do if not."""

import os
import shutil
import subprocess
from pathlib import Path

from hubgate.server.spaces.bubblewrap.cgroups import NoGroups, find_hierarchy
from hubgate.server.spaces.bubblewrap.pythons import find_pythons, package_folders
from hubgate.server.spaces.bubblewrap.seccomp import is_supported

INSTALL = "Install bubblewrap 0.8 or newer: apt-get install bubblewrap"
PROBE_SECONDS = 10
# User ids of Spaces, if the hub runs as root: those between the ranges that systemd uses for containers and for images.
# Ids of another system must not be the same, since the kernel counts some resources by user id.
FIRST_USER, USERS = 0x7000_0000, 0x0FFE_0000


def problems(folder: Path) -> list[str]:
    """Why sandboxes cannot run here. `folder` is the runner's, in the hub's data folder."""
    found = [
        f"The data folder is in {each}, which Spaces can read. Move it, and set HUBGATE_DATA_DIR."
        for each in _mounted_folders()
        if folder.resolve().is_relative_to(each.resolve())
    ]
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        found.append(f"The program bwrap is missing. {INSTALL}")
    elif failure := _failure(bubblewrap):
        found.append(
            f"bubblewrap cannot create a sandbox: {failure}. Allow unprivileged user namespaces "
            "(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)."
        )
    if not is_supported():
        found.append("Spaces run on x86_64 and aarch64 only. Use another machine.")
    if os.geteuid() == 0 and not _has_user_ids():
        found.append(f"The user ids from {FIRST_USER} are not mapped here. Run the hub as a user other than root.")
    if not find_pythons():
        found.append("The hub's Python interpreter was not found on PATH. Install it for all users.")
    elif all(each.pip is None for each in find_pythons().values()):
        found.append("Python has no pip. Install it: apt-get install python3-pip")
    try:
        find_hierarchy()
    except NoGroups as error:
        found.append(str(error))
    return found


def _mounted_folders() -> list[Path]:
    """Folders of the machine that all sandboxes see."""
    return [Path("/usr"), *(each.prefix for each in find_pythons().values()), *package_folders().values()]


def _failure(bubblewrap: str) -> str | None:
    """Why bubblewrap does not run as it is used here; None if it does."""
    user = FIRST_USER if os.geteuid() == 0 else None
    arguments = ["--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns", "--ro-bind", "/", "/", "true"]
    try:
        subprocess.run(
            [bubblewrap, "--size", "4096", "--tmpfs", "/tmp", *arguments],  # noqa: S108
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=True,
            env={},
            cwd="/",
        )
    except subprocess.CalledProcessError as error:
        return error.stderr.decode(errors="replace").strip() or f"exit status {error.returncode}"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None


def _has_user_ids() -> bool:
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= FIRST_USER and first + count >= FIRST_USER + USERS for first, _, count in ranges)
