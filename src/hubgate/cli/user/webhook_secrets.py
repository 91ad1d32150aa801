"""The secret of a webhook, as an argument or on standard input."""

import argparse
import os
import sys

from hubgate.client import HubgateError


def add_secret(group: "argparse._MutuallyExclusiveGroup") -> None:
    group.add_argument(
        "--secret",
        type=_secret_argument,
        metavar="S",
        help="the secret; other users of this machine can see it, so prefer --secret-stdin",
    )
    group.add_argument("--secret-stdin", action="store_true", help="read the secret from standard input")


def _secret_argument(text: str) -> str:
    """Reject an empty secret: an unset variable would silently create a webhook without a secret."""
    if not text.isascii() or not text.isprintable() or not text:
        raise argparse.ArgumentTypeError("must have at least one character, all printable ASCII")
    return text


def given_secret(options: argparse.Namespace) -> str | None:
    if options.secret_stdin:
        return _read_secret()
    given: str | None = options.secret
    return given


_MAX_READ = 4096


def _read_secret() -> str:
    """Read one line, without waiting for the end of input: the writer may leave the pipe open."""
    read = b""
    while b"\n" not in read and len(read) < _MAX_READ and (part := os.read(sys.stdin.fileno(), _MAX_READ)):
        read += part
    line, _, more = read.strip().partition(b"\n")
    if not line:
        raise HubgateError("the secret on standard input is empty. Write it as one line.")
    if more:
        raise HubgateError("standard input has more than one line. A secret is one line.")
    secret = line.strip().decode("latin-1")
    if not secret.isascii() or not secret.isprintable():
        raise HubgateError("the secret on standard input has characters other than printable ASCII.")
    return secret
