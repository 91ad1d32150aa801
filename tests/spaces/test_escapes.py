"""Attempts to leave a sandbox. Each is made by an app that runs in one; no packet leaves this machine."""

import errno
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

from tests.spaces.bed import LIMITS, spaces_bed

from hubgate.server.spaces.bubblewrap.command import PROGRAM, Bind
from hubgate.server.spaces.bubblewrap.pythons import find_pythons
from hubgate.server.spaces.bubblewrap.running import RunningApp
from hubgate.server.spaces.bubblewrap.sandbox import Contents
from hubgate.server.spaces.bubblewrap.sandboxes import Sandboxes
from hubgate.server.spaces.runner import MIB

# Runs each attempt and prints what it got, or the name of the error.
ATTEMPTS = """
import ctypes, errno, json, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
results = {}

def attempt(name, action):
    try:
        results[name] = action()
    except OSError as error:
        results[name] = errno.errorcode.get(error.errno, str(error))
    except BaseException as error:
        results[name] = type(error).__name__

def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *(ctypes.c_long(each) for each in arguments))
    return errno.errorcode.get(ctypes.get_errno(), "?") if result == -1 else "succeeded"

def read(path):
    with open(path, "rb") as file:
        return file.read(100).decode("latin-1")
"""
REPORT = "\nprint(json.dumps(results))\n"


async def attempts(folder: Path, code: str) -> dict[str, object]:
    async with spaces_bed(folder) as bed:
        result = await bed.printed(ATTEMPTS + code + REPORT)
        assert isinstance(result, dict)
        return result


async def test_files_of_the_hub_and_of_other_spaces_are_not_there(tmp_path: Path) -> None:
    for name in ("hubgate.db", "secret.key"):
        (tmp_path / name).write_text("private")
        (tmp_path / name).chmod(0o644)
    found = await attempts(
        tmp_path,
        f"""
attempt("database", lambda: read({str(tmp_path / "hubgate.db")!r}))
attempt("secret", lambda: read({str(tmp_path / "secret.key")!r}))
attempt("folder", lambda: os.listdir({str(tmp_path)!r}))
attempt("shadow", lambda: read("/etc/shadow"))
attempt("home", lambda: os.listdir("/home"))
attempt("var", lambda: os.listdir("/var"))
attempt("sys", lambda: os.listdir("/sys"))
attempt("disk", lambda: read("/dev/vda"))
attempt("memory", lambda: read("/proc/kcore"))
attempt("root of the first process", lambda: os.listdir("/proc/1/root/home"))
attempt("up", lambda: sorted(os.listdir("/../../..")))
attempt("other apps", lambda: os.listdir("/app/.."))
""",
    )
    own = found.pop("up")
    assert found.pop("other apps") is not None
    assert isinstance(own, list)
    assert not {"home", "var", "work", "srv", "sys", "mnt", "boot"} & set(own)
    assert found == dict.fromkeys(found, "ENOENT") | {
        "memory": found["memory"],
        "root of the first process": found["root of the first process"],
    }
    assert found["memory"] in ("EACCES", "EPERM", "ENOENT")
    assert found["root of the first process"] in ("EACCES", "EPERM", "ENOENT")


async def test_system_is_read_only(tmp_path: Path) -> None:
    found = await attempts(
        tmp_path,
        """
def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"

for path in ("/usr/bin/x", "/etc/passwd", "/etc/x", "/x", "/dev/x", "/opt/hubgate/x", "/opt/hubgate-inside.py",
             "/opt/hubgate/hubgate/__init__.py", "/env/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
    attempt(path, lambda: write(path))
attempt("work folder", lambda: write("/app/x"))
attempt("temporary folder", lambda: write("/tmp/x"))
""",
    )
    assert (found.pop("work folder"), found.pop("temporary folder")) == ("written", "written")
    assert set(map(str, found.values())) <= {"EROFS", "EACCES", "EPERM", "ENOENT"}


async def test_network_has_only_its_own_loopback(tmp_path: Path) -> None:
    """A service of the host on loopback and on an abstract name, and addresses elsewhere."""
    service, name = socket.create_server(("127.0.0.1", 0)), f"\0hubgate-{os.getpid()}"
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(name)
    abstract.listen()
    with service, abstract:
        found = await attempts(
            tmp_path,
            f"""
def dial(address, family=socket.AF_INET):
    with socket.socket(family) as peer:
        peer.settimeout(5)
        peer.connect(address)
    return "connected"

attempt("loopback", lambda: dial(("127.0.0.1", {service.getsockname()[1]})))
attempt("abstract", lambda: dial({name!r}, socket.AF_UNIX))
attempt("metadata", lambda: dial(("169.254.169.254", 80)))
attempt("private", lambda: dial(("10.0.0.1", 80)))
attempt("public", lambda: dial(("192.0.2.1", 80)))
attempt("public, version 6", lambda: dial(("2001:db8::1", 80), socket.AF_INET6))
attempt("interfaces", lambda: sorted(name for _, name in socket.if_nameindex()))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno())
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno())
attempt("pair of TIPC", lambda: len(socket.socketpair(30, socket.SOCK_SEQPACKET)))
attempt("SCTP", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).fileno())
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).fileno())
attempt("crypto", lambda: socket.socket(38, socket.SOCK_SEQPACKET).fileno())
attempt("audit", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).fileno())
""",
        )
    unreachable = dict.fromkeys(("metadata", "private", "public"), "ENETUNREACH")
    refused = dict.fromkeys(("vsock", "crypto", "packet", "audit", "pair of TIPC"), "EAFNOSUPPORT")
    version_6 = found.pop("public, version 6")
    assert version_6 in ("ENETUNREACH", "EADDRNOTAVAIL")
    assert found == {
        "loopback": "ECONNREFUSED",
        "abstract": "ECONNREFUSED",
        "interfaces": ["lo"],
        "raw": "EPERM",
        "SCTP": "EPROTONOSUPPORT",
        **unreachable,
        **refused,
    }


async def test_proxy_refuses_the_host_its_network_and_metadata(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        port = service.getsockname()[1]
        found = await attempts(
            tmp_path,
            f"""
import http.client
def connect(host, port):
    connection = http.client.HTTPConnection("127.0.0.1", 61080, timeout=60)
    connection.set_tunnel(host, port)
    connection.connect()
    return "connected"

def get(url):
    connection = http.client.HTTPConnection("127.0.0.1", 61080, timeout=60)
    connection.request("GET", url)
    return connection.getresponse().status

def refusal(host, port=80):
    try:
        return connect(host, port)
    except OSError as error:
        return str(error).split(":")[1].split()[0]

for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
    attempt(host, lambda: refusal(host, {port}))
for host in ("169.254.169.254", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "[fd00:ec2::254]", "127.1"):
    attempt(host, lambda: refusal(host))
attempt("port", lambda: refusal("127.0.0.1", 25))
attempt("plain", lambda: get("http://127.0.0.1:{port}/"))
attempt("plain metadata", lambda: get("http://169.254.169.254/latest/meta-data/"))
attempt("relative", lambda: get("/"))
attempt("other scheme", lambda: get("ftp://127.0.0.1/"))
""",
        )
        service.settimeout(0)
        try:
            service.accept()
        except BlockingIOError:
            reached = False
        else:
            reached = True
    assert not reached
    named = {"plain": 502, "plain metadata": 502, "relative": 400, "other scheme": 400, "port": "403", "127.1": "403"}
    assert found == dict.fromkeys(found, "502") | named


async def test_other_processes_are_out_of_reach(tmp_path: Path) -> None:
    found = await attempts(
        tmp_path,
        f"""
attempt("processes", lambda: sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
attempt("kill the hub", lambda: os.kill({os.getpid()}, signal.SIGKILL))
attempt("environment of the hub", lambda: read("/proc/{os.getpid()}/environ"))
attempt("kill all", lambda: os.kill(-1, 0))
attempt("user", lambda: [os.getuid(), os.getgid(), os.getgroups()])
attempt("become root", lambda: os.setuid(0))
attempt("status", lambda: [line.split()[1] for line in open("/proc/self/status")
                           if line.startswith(("CapEff", "CapBnd", "NoNewPrivs", "Seccomp:"))])
""",
    )
    processes = found.pop("processes")
    assert isinstance(processes, list)
    assert max(processes) < 50
    assert found == {
        "kill the hub": "ESRCH",
        "environment of the hub": "ENOENT",
        "kill all": None,
        "user": [1000, 1000, []],
        # No other user id exists in the namespace.
        "become root": "EINVAL",
        "status": ["0" * 16, "0" * 16, "1", "2"],
    }


async def test_dangerous_system_calls_are_denied(tmp_path: Path) -> None:
    found = await attempts(
        tmp_path,
        """
import platform
arm = platform.machine() == "aarch64"
CLONE_NEWUSER = 0x10000000
attempt("unshare", lambda: call(97 if arm else 272, CLONE_NEWUSER))
attempt("clone", lambda: call(220 if arm else 56, CLONE_NEWUSER | 17, 0, 0, 0, 0))
attempt("clone3", lambda: call(435, 0, 0))
attempt("mount", lambda: call(40 if arm else 165, 0, 0, 0, 0, 0))
attempt("ptrace", lambda: call(117 if arm else 101, 16, 1, 0, 0))
attempt("bpf", lambda: call(280 if arm else 321, 0, 0, 0))
attempt("io_uring", lambda: call(425, 8, 0))
attempt("userfaultfd", lambda: call(282 if arm else 323, 0))
attempt("keys", lambda: call(219 if arm else 250, 0, -3, 0))
attempt("perf", lambda: call(241 if arm else 298, 0, 0, -1, -1, 0))
attempt("handles", lambda: call(265 if arm else 304, -100, 0, 0))
attempt("setns", lambda: call(268 if arm else 308, 0, 0))
attempt("terminal", lambda: __import__("fcntl").ioctl(0, 0x5412, b"x"))
""",
    )
    assert found == dict.fromkeys(found, "EPERM") | {"clone3": "ENOSYS"}


async def test_other_spaces_are_out_of_reach(tmp_path: Path) -> None:
    """Under root each Space is another user of the machine, so the system keeps them apart as well."""
    async with spaces_bed(tmp_path) as bed:
        other = await bed.serving(space="space-2")
        own = await bed.serving(space="space-1")
        assert isinstance(other, RunningApp)
        assert isinstance(own, RunningApp)
        users = [{Path(f"/proc/{pid}").stat().st_uid for pid in each.processes()} for each in (own, other)]
        assert all(len(each) == 1 for each in users)
        if os.geteuid() == 0:
            assert users[0] != users[1]
            assert {0} not in users
        code = """
            import json, os, socket
            with socket.socket() as peer:
                print(json.dumps([os.listdir("/app"), peer.connect_ex(("127.0.0.1", int(os.environ["PORT"])))]))
        """
        assert await bed.printed(code, space="space-1") == [["app.py"], errno.ECONNREFUSED]


async def test_endless_messages_do_not_keep_the_hub_busy(tmp_path: Path) -> None:
    """An app may change the first process of its sandbox, which sends messages to the hub."""
    program = tmp_path / "inside.py"
    program.write_text(
        dedent("""
            import socket, sys, time
            control, sent, end = socket.socket(fileno=int(sys.argv[2])), 0, time.monotonic() + 2
            control.settimeout(0.1)
            while time.monotonic() < end:
                try:
                    sent += control.send(b"elsewhere 1\\n" * 1000)
                except TimeoutError:
                    pass
            print(sent, flush=True)
        """)
    )
    lines: list[str] = []
    sandboxes = Sandboxes(tmp_path / "spaces", None)
    python = next(iter(find_pythons().values()))
    control, inner = socket.socketpair()
    with control, inner:
        contents = Contents(python, [], [Bind(program, PROGRAM)], {}, [inner.fileno()])
        name = sandboxes.next_name()
        sandbox = await sandboxes.open("space-1", LIMITS, name, contents, lines.append)
        running = RunningApp(sandbox, control, tmp_path / name, ExitStack())
        assert (await running.wait()).status == 0
    # What buffers hold, and a little more.
    assert int(lines[-1]) < MIB
