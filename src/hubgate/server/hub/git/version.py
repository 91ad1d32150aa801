"""Checks the version of the installed git program."""

import re
import signal
import subprocess

from hubgate.server.errors import StartupError

OLDEST = (2, 39)
_VERSION = re.compile(r"git version (\d+)\.(\d+)[\w.-]*")


def require_git() -> str:
    """Return the version of git; raise StartupError if git is missing or too old."""
    wanted = ".".join(map(str, OLDEST))
    # Ctrl-C goes to git, too, and a git ended by it would look broken. A child inherits the blocked signals.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        output = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise StartupError(f"hubgate needs git {wanted} or newer, and none can be run here. Install it.") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    found = _VERSION.match(output)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise StartupError(f"hubgate needs git {wanted} or newer; this is {output.strip()[:100]}.")
    return found[0].removeprefix("git version ")
