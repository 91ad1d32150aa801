"""Spaces, their stages, and the rules for their settings. No I/O."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from hubgate.server.errors import Unprocessable

# SDKs of a card that the hub runs. Others, such as docker and static, are stored.
RUNNABLE = ("python", "gradio")
# What owners want, and what only the operator decides: a Space that the operator stopped stays stopped.
RUN, PAUSE, STOP = "run", "pause", "stop"
HARDWARE = "cpu-basic"
# A Space sleeps after 48 hours without a request, or earlier; only the operator allows more.
LONGEST_SLEEP_SECONDS = 48 * 3600
SHORTEST_SLEEP_SECONDS = 60

# How long a request waits for the app's answer; deliveries of this hub have their own deadline.
ANSWER_SECONDS = 15.0
# Requests of one Space that have no answer yet.
MAX_WAITING = 32

# Secrets and variables of one Space together.
MAX_KEYS = 100
# As many bytes as a program can be started with.
MAX_VALUE_BYTES = 16 * 1024
MAX_DESCRIPTION_LENGTH = 500
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
# Set by the hub, or able to change which code runs before the app.
_RESERVED_KEYS = frozenset(
    """
    GRADIO_SERVER_NAME GRADIO_SERVER_PORT HF_ENDPOINT HOME HOST HTTP_PROXY HTTPS_PROXY HUBGATE_ENDPOINT NO_PROXY PATH
    PORT SPACE_HOST SPACE_ID TMPDIR
    """.split()  # noqa: SIM905 -- a paragraph of names reads better than twenty lines
)


class Stage(Enum):
    """The stages that existing clients know, and SLEEPING."""

    NO_APP_FILE = "NO_APP_FILE"
    CONFIG_ERROR = "CONFIG_ERROR"
    BUILDING = "BUILDING"
    BUILD_ERROR = "BUILD_ERROR"
    APP_STARTING = "APP_STARTING"
    RUNNING = "RUNNING"
    RUNNING_BUILDING = "RUNNING_BUILDING"
    RUNNING_APP_STARTING = "RUNNING_APP_STARTING"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    SLEEPING = "SLEEPING"
    PAUSED = "PAUSED"
    # Stored, not run: its SDK is not one that the hub runs, or the operator runs no Spaces.
    STOPPED = "STOPPED"


# Stages in which a request waits for the app. In all others except RUNNING, it is rejected.
WAKING = frozenset({Stage.BUILDING, Stage.APP_STARTING, Stage.SLEEPING})
SERVING = frozenset({Stage.RUNNING, Stage.RUNNING_BUILDING, Stage.RUNNING_APP_STARTING})


class Space(Struct, frozen=True):
    """The row of a Space. The order of the fields is that of `store.SPACE`."""

    repo_id: str
    sdk: str
    wanted: str
    version: int
    tried_version: int
    factory_version: int
    stage: str
    stage_at: int
    message: str
    running_version: int | None
    running_sha: str | None
    sleep_seconds: int | None
    last_request_at: int
    failures: int
    process: str | None
    used_cpu: int | None
    used_memory: int | None
    used_processes: int | None
    build_lines: int
    run_lines: int


class Totals(Struct, frozen=True):
    """All Spaces of the hub: their number by stage, the memory they use, and the requests that wait for them."""

    stages: dict[str, int]
    memory: int
    requests: int


class Setting(Struct, frozen=True):
    """A secret or a variable; `value` is None for secrets, which are never shown."""

    key: str
    value: str | None
    description: str
    updated_at: int


def runnable_sdk(card: Mapping[str, Any]) -> str:
    """The SDK in a card, if the hub runs it; otherwise ""."""
    sdk = card.get("sdk")
    return sdk if isinstance(sdk, str) and sdk in RUNNABLE else ""


def check_setting(key: str, value: str, description: str) -> None:
    """Raise Unprocessable if a secret or variable cannot be passed to an app."""
    if not _KEY.match(key):
        raise Unprocessable(
            "The name of a secret or variable must have 1 to 100 letters, digits or underscores, "
            f"and not start with a digit: {key[:120]!r}."
        )
    if key.upper() in _RESERVED_KEYS or key.upper().startswith(("LD_", "PYTHON")):
        raise Unprocessable(f"{key} is set by the hub. Choose another name.")
    if len(value.encode(errors="replace")) > MAX_VALUE_BYTES or "\0" in value:
        raise Unprocessable(f"A value has at most {MAX_VALUE_BYTES:,} bytes, without NUL.")
    if len(description) > MAX_DESCRIPTION_LENGTH or "\0" in description:
        raise Unprocessable(f"A description has at most {MAX_DESCRIPTION_LENGTH} characters, without NUL.")


def check_sleep_seconds(seconds: int) -> int:
    """The time without requests after which an owner lets a Space sleep; longer or never is the operator's decision."""
    if SHORTEST_SLEEP_SECONDS <= seconds <= LONGEST_SLEEP_SECONDS:
        return seconds
    raise Unprocessable(
        f"Spaces on {HARDWARE} sleep after {SHORTEST_SLEEP_SECONDS} to {LONGEST_SLEEP_SECONDS:,} seconds without a "
        "request. The operator of this hub can allow more."
    )
