"""`hubgate`: finds the command, imports only its module, and prints errors as one line.

Exit status: 0, 1 (error), 2 (usage) or 130 (Ctrl-C).
"""

import argparse
import gc
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from hubgate import __version__
from hubgate.cli.commands import COMMANDS, Command


class _Parser(argparse.ArgumentParser):
    """Prints errors as one line: the usage of a command with flags for all settings would fill the screen."""

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"invalid \w+ value:", "invalid value", message.replace("invalid choice:", "unknown"))
        self.exit(2, f"error: {message}. Try: {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None, commands: Sequence[Command] = COMMANDS) -> None:
    # Python can lose a KeyboardInterrupt during an import. The blocked signal is delivered after the imports.
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    _open_standard_streams()
    try:
        sys.exit(run(list(sys.argv[1:] if arguments is None else arguments), commands))
    except KeyboardInterrupt:
        sys.exit(130)


def _open_standard_streams() -> None:
    """Open closed standard streams. A service manager may close some, and the next file would get their number."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot display a tick shows a question mark instead of a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def run(arguments: list[str], commands: Sequence[Command]) -> int:
    command = next((command for command in commands if arguments[:1] == [command.name]), None)
    try:
        return _usage(arguments, commands) if command is None else _run(command, arguments[1:])
    except BrokenPipeError:
        # The reader of the output has closed the pipe, as `head` does.
        sys.stdout = None
        return 1
    except OSError as error:
        sys.stdout = None
        return _fail(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))


def _run(command: Command, arguments: list[str]) -> int:
    run_command = _run_server_command if command.needs_server else _run_user_command
    try:
        return run_command(command, arguments)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("hubgate"):
            raise
        needed = ("the server", "hubgate[server]") if command.needs_server else (error.name, "hubgate")
        return _fail(f'hubgate {command.name} needs {needed[0]}. Run: pip install "{needed[1]}"')


def _module_of(command: Command) -> ModuleType:
    """Import the command's module. Garbage collection is off: it would search hundreds of permanent modules again and
    again.
    """
    gc.disable()
    module = importlib.import_module(command.module)
    gc.freeze()
    gc.enable()
    return module


def _run_user_command(command: Command, arguments: list[str]) -> int:
    module = _module_of(command)
    from hubgate.cli.user.common import error_message
    from hubgate.client.errors import HubgateError

    options = _parse(command, module, arguments)
    try:
        status: int = module.run(options)
    except HubgateError as error:
        return _fail(error_message(error, getattr(options, "endpoint", None)))
    except ValueError as error:
        # The client raises ValueError for invalid arguments.
        _fail(str(error))
        return 2
    return status


def _run_server_command(command: Command, arguments: list[str]) -> int:
    from hubgate.server.errors import HubError, StartupError, StorageUnavailable
    from hubgate.server.logs import redacted
    from hubgate.server.storage.data_folder import create_private_files

    create_private_files()
    module = _module_of(command)
    options = _parse(command, module, arguments)
    try:
        status: int = module.run(options)
    except StorageUnavailable as error:
        # The engine's message helps the operator, but its address may contain a password.
        return _fail(redacted(f"Cannot use the database: {error.__cause__ or error}"))
    except (StartupError, HubError) as error:
        return _fail(str(error))
    return status


def _parse(command: Command, module: ModuleType, arguments: list[str]) -> argparse.Namespace:
    parser = _Parser(prog=f"hubgate {command.name}", description=_description(command, module), allow_abbrev=False)
    getattr(module, command.configure)(parser)
    options = parser.parse_args(arguments)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return options


def _description(command: Command, module: ModuleType) -> str | None:
    """The description of a command: its module's docstring or, if commands share a module, the command's help."""
    shared = command.configure != "configure"
    return f"{command.help[0].upper()}{command.help[1:]}." if shared else module.__doc__


def _usage(arguments: list[str], commands: Sequence[Command]) -> int:
    if arguments[:1] == ["--version"]:
        print(f"hubgate {__version__}")
        return 0
    is_help = arguments[:1] in (["--help"], ["-h"])
    if arguments and not is_help:
        import difflib

        near = difflib.get_close_matches(arguments[0], [command.name for command in commands], 1)
        _fail(f"unknown command {arguments[0]!r}.{f' Did you mean {near[0]}?' if near else ''} Try: hubgate --help")
        return 2
    lines = ["usage: hubgate COMMAND ...", ""]
    lines += [f"  {command.name:<10} {command.help}" for command in commands]
    lines += ["", "hubgate COMMAND --help describes a command; --version prints the version."]
    print("\n".join(lines), file=sys.stdout if is_help else sys.stderr, flush=True)
    return 0 if is_help else 2


def _fail(text: str) -> int:
    print(f"error: {' '.join(text.split())}", file=sys.stderr)
    return 1
