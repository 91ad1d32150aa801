"""The server's side of the push protocol (gitprotocol-pack, "Pushing Data To a Server"): advertisement, commands,
report. It is implemented here because git's program would move refs on disk, and ours are in the database.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from hubgate.server.errors import BadRequest
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.git import pktline
from hubgate.server.hub.git.pktline import LineReader

MAX_COMMANDS = 1_000
# Bytes before the pack.
MAX_COMMAND_BYTES = 4 * 1024 * 1024
ZERO = "0" * 40

_CAPABILITIES = b"report-status delete-refs quiet atomic ofs-delta side-band-64k object-format=sha1 agent=hubgate"
_COMMAND = re.compile(rb"([0-9a-f]{40}) ([0-9a-f]{40}) ([^\0]+)\Z")
_DATA, _PROGRESS, _FATAL = 1, 2, 3

# An empty packet, sent so that proxies do not time out.
KEEPALIVE = pktline.line(bytes([_DATA]))


class PushRequest(Struct, frozen=True):
    """The commands of a push. `capabilities` are the advertised capabilities that the client chose. `too_many_commands`
    is set if there are more than MAX_COMMANDS.
    """

    changes: Sequence[RefChange]
    capabilities: frozenset[str]
    shallow: bool
    too_many_commands: bool

    @property
    def uses_side_band(self) -> bool:
        return "side-band-64k" in self.capabilities


class PushOutcome(Struct, frozen=True):
    """The outcome of a push. `refused` has a reason for each ref that did not move. The user sees `messages`."""

    refused: Mapping[str, str]
    unpack: str = "ok"
    messages: Sequence[str] = ()


def advertisement(refs: Iterable[tuple[str, str]], *, thin: bool) -> bytes:
    """The refs and capabilities. Without `thin`, clients send packs that can be read without the repo's objects."""
    lines = [f"{sha} {name}".encode() for name, sha in refs] or [f"{ZERO} capabilities^{{}}".encode()]
    lines[0] += b"\0" + _CAPABILITIES + (b"" if thin else b" no-thin")
    return b"".join(pktline.line(line + b"\n") for line in lines) + pktline.FLUSH


async def read_commands(lines: LineReader) -> PushRequest:
    """Read the commands before the pack. Reading stops once there are too many."""
    changes: list[RefChange] = []
    capabilities: frozenset[str] = frozenset()
    shallow, size = False, 0
    while (payload := await lines.next()) is not None:
        size += len(payload)
        if size > MAX_COMMAND_BYTES:
            raise BadRequest(f"The commands of a push may have at most {MAX_COMMAND_BYTES:,} bytes.")
        payload = payload.removesuffix(b"\n")
        if payload.startswith(b"shallow ") and not changes:
            shallow = True
            continue
        payload, _, chosen = payload.partition(b"\0")
        if not changes:
            capabilities = _capabilities(chosen)
        changes.append(_change(payload))
        if len(changes) > MAX_COMMANDS:
            return PushRequest(changes, capabilities, shallow, too_many_commands=True)
    return PushRequest(changes, capabilities, shallow, too_many_commands=False)


def _capabilities(chosen: bytes) -> frozenset[str]:
    capabilities = frozenset(chosen.decode("ascii", "replace").split())
    if "push-options" in capabilities or any(capability.startswith("push-cert") for capability in capabilities):
        raise BadRequest("Push options and signed pushes are not supported.")
    if any(
        capability.startswith("object-format=") and capability != "object-format=sha1" for capability in capabilities
    ):
        raise BadRequest("Repos here use SHA-1 object ids.")
    return capabilities


def _change(payload: bytes) -> RefChange:
    command = _COMMAND.match(payload)
    if command is None:
        raise BadRequest("A line of the push is not a command.")
    old, new = command[1].decode(), command[2].decode()
    # Zero to zero deletes a ref that does not exist: git sends this for a deletion by full name.
    if old == new != ZERO:
        raise BadRequest("A command of the push changes nothing.")
    name = command[3].decode(errors="surrogateescape")
    return RefChange(name, None if old == ZERO else old, None if new == ZERO else new)


def report(request: PushRequest, outcome: PushOutcome) -> bytes:
    return b"".join(_report_lines(request, outcome))


def failure(request: PushRequest, message: str) -> bytes:
    """The report of a push that failed as a whole, for a reason unrelated to a single ref."""
    if request.uses_side_band:
        return b"".join(pktline.with_band(_FATAL, message.encode() + b"\n")) + pktline.FLUSH
    return report(request, PushOutcome({change.ref: message for change in request.changes}))


def _report_lines(request: PushRequest, outcome: PushOutcome) -> Iterator[bytes]:
    if request.uses_side_band:
        for message in outcome.messages:
            yield from pktline.with_band(_PROGRESS, message.encode(errors="replace") + b"\n")
    status = _report(request, outcome) if "report-status" in request.capabilities else b""
    if request.uses_side_band:
        yield from pktline.with_band(_DATA, status)
        yield pktline.FLUSH
    else:
        yield status


def _report(request: PushRequest, outcome: PushOutcome) -> bytes:
    lines = [f"unpack {outcome.unpack}\n"]
    for change in request.changes:
        reason = outcome.refused.get(change.ref)
        lines.append(f"ok {change.ref}\n" if reason is None else f"ng {change.ref} {reason}\n")
    return b"".join(pktline.line(line.encode(errors="surrogateescape")) for line in lines) + pktline.FLUSH
