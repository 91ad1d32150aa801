"""The command line of bubblewrap: what a sandbox sees of the machine."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hubgate.server.spaces.bubblewrap.launch import STAGE
from hubgate.server.spaces.bubblewrap.pythons import PACKAGES, Python, package_folders
from hubgate.server.spaces.runner import MIB

PROGRAM = "/opt/hubgate-inside.py"
INSIDE = Path(__file__).with_name("inside.py")
# Both are stored in memory, and count towards the limit of memory.
TEMPORARY_BYTES = 64 * MIB
SHARED_BYTES = 64 * MIB

# Ids inside; outside, they are the Space's own.
USER_INSIDE = 1000

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)

# Files of the operator, which may contain secrets that the hub's user can read.
_HIDDEN = ("/usr/local/etc", "/usr/local/var", "/usr/src")

PASSWD = f"space:x:{USER_INSIDE}:{USER_INSIDE}::/app:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
GROUP = f"space:x:{USER_INSIDE}:\nnogroup:x:65534:\n"
HOSTS = "127.0.0.1 localhost space\n::1 localhost\n"


@dataclass(frozen=True)
class Folder:
    """A file system in memory with a fixed size."""

    path: str
    size: int


@dataclass(frozen=True)
class Bind:
    """A file or folder of the machine."""

    source: Path
    target: str
    is_writable: bool = False


@dataclass
class Command:
    """Collects the arguments, and the files of the machine that they name.

    If `is_staged`, `launch.py` mounts these files in its stage, by their position.
    """

    bubblewrap: str
    is_staged: bool
    binds: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def add(self, *arguments: str) -> None:
        self.arguments += arguments

    def bind(self, bind: Bind) -> None:
        source = os.path.realpath(bind.source)
        if self.is_staged:
            self.binds.append(source)
            source = f"{STAGE}/{len(self.binds) - 1}"
        self.add("--bind" if bind.is_writable else "--ro-bind", source, bind.target)

    def system(self, python: Python) -> None:
        self.bind(Bind(Path("/usr"), "/usr"))
        for hidden in _HIDDEN:
            if Path(hidden).is_dir():
                self.add("--perms", "0555", "--size", "4096", "--tmpfs", hidden, "--remount-ro", hidden)
        for path in map(Path, _SYSTEM):
            if path.is_symlink():
                self.add("--symlink", str(path.readlink()), str(path))
            elif path.is_dir():
                self.bind(Bind(path, str(path)))
        for path in map(Path, _CONFIGURATION):
            if path.exists():
                self.bind(Bind(path, str(path)))
        if not python.prefix.is_relative_to("/usr"):
            self.bind(Bind(python.prefix, str(python.prefix)))
        for name, path in package_folders().items():
            self.bind(Bind(path, f"{PACKAGES}/{name}"))
        self.bind(Bind(INSIDE, PROGRAM))


def sandbox_command(
    bubblewrap: str,
    python: Python,
    *,
    is_staged: bool,
    folders: Sequence[Folder],
    binds: Sequence[Bind],
    # Descriptors of the seccomp filter and of /etc/passwd, group and hosts.
    filter_fd: int,
    etc_fds: tuple[int, int, int],
    inside: Sequence[str],
) -> Command:
    command = Command(bubblewrap, is_staged)
    command.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts")
    command.add("--unshare-cgroup-try", "--disable-userns", "--die-with-parent", "--new-session")
    command.add("--hostname", "space", "--uid", str(USER_INSIDE), "--gid", str(USER_INSIDE), "--clearenv")
    command.system(python)
    for name, descriptor in zip(("passwd", "group", "hosts"), etc_fds, strict=True):
        command.add("--ro-bind-data", str(descriptor), f"/etc/{name}")
    command.add("--proc", "/proc", "--dev", "/dev")
    for folder in (Folder("/dev/shm", SHARED_BYTES), Folder("/tmp", TEMPORARY_BYTES), *folders):  # noqa: S108
        command.add("--perms", "0700", "--size", str(folder.size), "--tmpfs", folder.path)
    for bind in binds:
        command.bind(bind)
    # Otherwise both would be writable file systems of unlimited size.
    command.add("--remount-ro", "/dev", "--remount-ro", "/")
    command.add("--seccomp", str(filter_fd), "--chdir", "/", "--")
    command.add(str(python.executable), "-I", "-S", PROGRAM, *inside)
    return command
