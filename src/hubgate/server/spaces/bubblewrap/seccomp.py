"""The seccomp filter of a sandbox, as a program for the kernel's classic BPF machine.

A list of denied calls, not of allowed ones: wheels from an index use nearly every ordinary call, and new versions of
the C library use new ones, while namespaces, the missing capabilities and cgroups already confine what ordinary calls
can reach. The filter removes calls that reach around them: those that create namespaces or mounts (and with them
capabilities over more kernel code), that read other processes, that have had most of the kernel's privilege
escalations (io_uring, bpf, userfaultfd, keys), and sockets of families that ignore network namespaces, such as vsock.
"""

import errno
import platform
import struct

_LOAD = 0x20
_JUMP_IF_EQUAL = 0x15
_JUMP_IF_GREATER_OR_EQUAL = 0x35
_JUMP_IF_ANY_BIT = 0x45
_RETURN = 0x06

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000

# Offsets in the kernel's struct seccomp_data; of an argument, the lower 32 bits.
_NUMBER, _ARCHITECTURE = 0, 4
_ARGUMENTS = 16

# Architecture as the kernel's audit code, and the position of its numbers below.
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32_BIT = 0x40000000

# The numbers on x86_64 and aarch64; None if the architecture has no such call.
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "fanotify_init": (300, 262),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
_CLONE, _CLONE3, _IOCTL = (56, 220), (435, 435), (16, 29)
# socket and socketpair: both load the kernel's module of a family.
_SOCKETS = ((41, 198), (53, 199))
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
_NEW_NAMESPACES = 0x7E020000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0
# The default, ICMP, TCP, UDP, ICMPv6.
_PROTOCOLS = (0, 1, 6, 17, 58)
# Both would insert input into a terminal.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


def is_supported() -> bool:
    return platform.machine() in _ARCHITECTURES


def seccomp_filter() -> bytes:
    """The filter for this machine, as bubblewrap reads it from a descriptor."""
    code, column = _ARCHITECTURES[platform.machine()]
    program = [
        _load(_ARCHITECTURE),
        _step(_JUMP_IF_EQUAL, code, 1, 0),
        _step(_RETURN, _KILL_PROCESS),
        _load(_NUMBER),
    ]
    if column == 0:
        # The numbers of the x32 ABI reach the same calls under other numbers.
        program += [_step(_JUMP_IF_GREATER_OR_EQUAL, _X32_BIT, 0, 1), _step(_RETURN, _KILL_PROCESS)]
    for numbers in _DENIED.values():
        number = numbers[column]
        if number is not None:
            program += [_step(_JUMP_IF_EQUAL, number, 0, 1), _deny(errno.EPERM)]
    # Its flags are in memory, which a filter cannot read. The C library then uses clone.
    program += [_step(_JUMP_IF_EQUAL, _CLONE3[column], 0, 1), _deny(errno.ENOSYS)]
    program += _when(
        _CLONE[column],
        [_load_argument(0), _step(_JUMP_IF_ANY_BIT, _NEW_NAMESPACES, 0, 1), _deny(errno.EPERM)],
    )
    program += _when(
        _IOCTL[column],
        [
            _load_argument(1),
            _step(_JUMP_IF_EQUAL, _TIOCSTI, 1, 0),
            _step(_JUMP_IF_EQUAL, _TIOCLINUX, 0, 1),
            _deny(errno.EPERM),
        ],
    )
    for call in _SOCKETS:
        program += _when(call[column], _socket_rules())
    program.append(_step(_RETURN, _ALLOW))
    return b"".join(program)


def _socket_rules() -> list[bytes]:
    """Allow the families and protocols that programs use: the kernel loads modules for others."""
    last = len(_PROTOCOLS)
    return [
        _load_argument(0),
        _step(_JUMP_IF_EQUAL, _AF_UNIX, 9 + last, 0),
        _step(_JUMP_IF_EQUAL, _AF_INET, 6, 0),
        _step(_JUMP_IF_EQUAL, _AF_INET6, 5, 0),
        _step(_JUMP_IF_EQUAL, _AF_NETLINK, 1, 0),
        _deny(errno.EAFNOSUPPORT),
        _load_argument(2),
        _step(_JUMP_IF_EQUAL, _NETLINK_ROUTE, 3 + last, 0),
        _deny(errno.EAFNOSUPPORT),
        _load_argument(2),
        *(_step(_JUMP_IF_EQUAL, protocol, last - number, 0) for number, protocol in enumerate(_PROTOCOLS)),
        _deny(errno.EPROTONOSUPPORT),
    ]


def _step(operation: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One instruction. The jumps count the instructions to leave out."""
    return struct.pack("=HBBI", operation, if_true, if_false, value)


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset)


def _load_argument(position: int) -> bytes:
    return _load(_ARGUMENTS + 8 * position)


def _deny(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)


def _when(number: int, then: list[bytes]) -> list[bytes]:
    """Instructions for one call, after which the number of the call is loaded again."""
    return [_step(_JUMP_IF_EQUAL, number, 0, len(then) + 1), *then, _load(_NUMBER)]
