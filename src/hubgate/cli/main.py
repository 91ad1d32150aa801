"""`hubgate`: finds the command, loads only what that command needs, turns refusals into one line.

Exit status 0, 1 (refused, with one clear line) or 2 (usage).
"""

import argparse
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hubgate import __version__


@dataclass(frozen=True)
class Command:
    name: str
    help: str
    module: str


COMMANDS = (
    Command("serve", "run the hub", "hubgate.cli.serve"),
    Command("deliver", "run the background process alone", "hubgate.cli.deliver"),
    Command("migrate", "bring the database to this version's schema", "hubgate.cli.migrate"),
    Command("doctor", "check configuration, database, keys and folders", "hubgate.cli.doctor"),
    Command("admin", "operate the hub: users, organizations, apps, tokens, keys, backup", "hubgate.cli.admin"),
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line: the usage of a command that takes every setting fills a screen."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message}. Try: {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> None:
    # Python can lose the exception of a Ctrl-C that comes in the middle of an import. Held back, it comes afterwards.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _open_standard_streams()
    try:
        sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))
    except KeyboardInterrupt:
        sys.exit(130)


def _open_standard_streams() -> None:
    """A service manager may start us with some of them closed; the next file opened would then take their place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a tick gets a question mark rather than a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def run(arguments: list[str]) -> int:
    command = next((command for command in COMMANDS if arguments[:1] == [command.name]), None)
    if command is None:
        return _usage(arguments)
    try:
        return _run(command, arguments[1:])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hubgate"):
            raise
        return _refuse(f'hubgate {command.name} needs the server. Run: pip install "hubgate[server]"')


def _run(command: Command, arguments: list[str]) -> int:
    from hubgate.server.errors import HubError, StartupError, StorageUnavailable
    from hubgate.server.logs import redacted

    module = importlib.import_module(command.module)
    parser = _Parser(prog=f"hubgate {command.name}", description=module.__doc__, allow_abbrev=False)
    module.configure(parser)
    options = parser.parse_args(arguments)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        status: int = module.run(options)
    except StorageUnavailable as error:
        # The engine's own words help the operator; the address in them may hold a password.
        return _refuse(redacted(f"Cannot use the database: {error.__cause__ or error}"))
    except (StartupError, HubError) as error:
        return _refuse(str(error))
    except BrokenPipeError:
        # The reader of our output went away, as `head` does.
        sys.stdout = None
        return 1
    except OSError as error:
        sys.stdout = None
        return _refuse(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    return status


def _usage(arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        print(f"hubgate {__version__}")
        return 0
    asked = arguments[:1] in (["--help"], ["-h"])
    lines = ["usage: hubgate COMMAND ...", ""]
    lines += [f"  {command.name:<10} {command.help}" for command in COMMANDS]
    lines += ["", "hubgate COMMAND --help tells more; --version prints the version."]
    print("\n".join(lines), file=sys.stdout if asked else sys.stderr)
    if arguments and not asked:
        print(f"error: there is no command {arguments[0]!r}.", file=sys.stderr)
    return 0 if asked else 2


def _refuse(text: str) -> int:
    print(f"error: {' '.join(text.split())}", file=sys.stderr)
    return 1
