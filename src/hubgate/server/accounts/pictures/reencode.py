"""Draws an uploaded picture anew. Runs as a program, `python -I reencode.py SIZE...`: the picture on standard input,
squares of these sizes as WebP on standard output, each after its length in four bytes.

Decoders have had exploitable bugs, so the process that runs them can do nothing else: memory, time and files are
limited, and on Linux a seccomp filter leaves only calls that compute, read open files and write to them. There is no
network, no new file and no new process.

Nothing but the pixels of the first frame passes through: metadata, further frames and data after the picture do not.
Exit status 3: this is not a picture that the hub accepts. Any other failure is not the picture's fault.
"""

import ctypes
import io
import os
import platform
import resource
import struct
import sys
import warnings

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
# A photo of a phone, decoded in 100 MB; a small file can declare billions.
MAX_PIXELS = 25_000_000
MEMORY = 512 * 1024 * 1024
CPU_SECONDS = 5
QUALITY = 85
# Not 1, which is also the status after an exception, such as a library that cannot be loaded.
REJECTED = 3

PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
ALLOW, REFUSE = 0x7FFF0000, 0x00050001
# The kernel's code of the architecture, and the numbers of: read, write, close, fstat, lseek, mmap, mprotect, munmap,
# brk, mremap, madvise, rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack, sched_yield, getpid, gettid, futex,
# clock_gettime, getrandom, exit, exit_group.
CALLS = {
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 8, 9, 10, 11, 12, 25, 28, 13, 14, 15, 131, 24, 39, 186, 202, 228, 318, 60, 231),
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 57, 80, 62, 222, 226, 215, 214, 216, 233, 134, 135, 139, 132, 124, 172, 178, 98, 113, 278, 93, 94),
    ),
}


class Rejected(Exception):
    """The input is not a picture that the hub accepts."""


class Program(ctypes.Structure):
    """The kernel's struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def limit() -> None:
    # Address space is not limited on macOS, which does not support it.
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def confine() -> None:
    """Refuse all calls but those in CALLS, with EPERM. Other systems than Linux have only the limits."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return
    architecture, numbers = CALLS[platform.machine()]
    load, jump, answer = 0x20, 0x15, 0x06
    # Refuse calls of another architecture, whose numbers differ.
    lines = [(load, 0, 0, 4), (jump, 1, 0, architecture), (answer, 0, 0, REFUSE), (load, 0, 0, 0)]
    lines += [(jump, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    lines += [(answer, 0, 0, REFUSE), (answer, 0, 0, ALLOW)]
    code = b"".join(struct.pack("=HBBI", *line) for line in lines)
    program = Program(len(lines), code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp is not available")


def check_end(data: bytes) -> None:
    """Reject a file that continues after its picture: it is also a file of another kind."""
    ends = {
        b"\x89PNG\r\n\x1a\n": data.endswith(b"\0\0\0\0IEND\xaeB`\x82"),
        b"\xff\xd8\xff": data.rstrip(b"\0").endswith(b"\xff\xd9"),
        b"GIF8": data.rstrip(b"\0").endswith(b"\x3b"),
        b"RIFF": len(data) == 8 + int.from_bytes(data[4:8], "little"),
    }
    if not any(data.startswith(start) and is_complete for start, is_complete in ends.items()):
        raise Rejected


def squares(data: bytes, sizes: list[int]) -> list[bytes]:
    from PIL import Image, ImageOps

    check_end(data)
    picture = Image.open(io.BytesIO(data), formats=FORMATS)
    if picture.width * picture.height > MAX_PIXELS:
        raise Rejected
    # Smaller at once, where the format can; never smaller than the largest square.
    picture.draft("RGB", (2 * max(sizes), 2 * max(sizes)))
    picture.load()
    ImageOps.exif_transpose(picture, in_place=True)
    mode = "RGBA" if picture.has_transparency_data else "RGB"
    whole = picture if picture.mode == mode else picture.convert(mode)
    side = min(whole.size)
    left, top = (whole.width - side) // 2, (whole.height - side) // 2
    drawn = []
    for size in sizes:
        box = (left, top, left + side, top + side)
        scaled = whole.resize((size, size), Image.Resampling.LANCZOS, box, reducing_gap=3.0)
        # A new picture, without the metadata of the old one.
        plain = Image.frombytes(mode, scaled.size, scaled.tobytes())
        target = io.BytesIO()
        plain.save(target, "WEBP", quality=QUALITY, method=4)
        drawn.append(target.getvalue())
    return drawn


def warm_up(sizes: list[int]) -> None:
    """Load everything that a picture may need while files can still be opened."""
    from PIL import Image

    Image.init()
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    turned = Image.Exif()
    turned[0x0112] = 6
    for name in FORMATS:
        sample = io.BytesIO()
        Image.new("RGB", (2, 2)).save(sample, name, exif=turned.tobytes())
        squares(sample.getvalue(), sizes[:1])


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]]
    data = sys.stdin.buffer.read()
    warnings.simplefilter("error")
    limit()
    warm_up(sizes)
    confine()
    try:
        drawn = squares(data, sizes)
    except Exception:
        # Any error of a decoder means that the file is not a picture.
        os._exit(REJECTED)
    for content in drawn:
        sys.stdout.buffer.write(len(content).to_bytes(4, "big") + content)
    sys.stdout.buffer.flush()
    # Without the interpreter's last steps, which would need more calls.
    os._exit(0)


if __name__ == "__main__":
    main()
