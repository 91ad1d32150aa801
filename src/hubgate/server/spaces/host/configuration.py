"""What to run: the card, the files and the requirements of a Space's main branch."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hubgate.server.egress.hosted_links import hosted_url
from hubgate.server.errors import Unavailable, Unprocessable
from hubgate.server.hub.git import program
from hubgate.server.hub.git.objects import file_at
from hubgate.server.hub.git.paths import check_path
from hubgate.server.hub.repos.model import Repo
from hubgate.server.spaces.model import Stage
from hubgate.server.spaces.runner import MIB

DEFAULT_APP_FILE = "app.py"
REQUIREMENTS = "requirements.txt"
ARCHIVE_SECONDS = 300.0
MAX_REQUIREMENTS_BYTES = 64 * 1024

_VERSION = re.compile(r"(3\.[0-9]{1,2})(\.[0-9]{1,3})?\Z")
_SDK_VERSION = re.compile(r"[0-9][0-9A-Za-z.]{0,30}\Z")


class Rejected(Exception):
    """A Space cannot run as it is. The message is for its owner."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Configuration(Struct, frozen=True):
    sha: str
    app_file: str
    python: str
    requirements: str


async def read_configuration(repo: Repo, folder: Path, pythons: list[str]) -> Configuration:
    """The configuration of the commit at the head of main; Rejected if there is an error in it."""
    card: dict[str, Any] = msgspec.json.decode(repo.card)
    if repo.head_sha is None:
        raise Rejected(Stage.NO_APP_FILE, "The Space has no files yet. Push an app to its main branch.")
    app_file = _app_file(card)
    entry, _ = await file_at(folder, repo.head_sha, app_file)
    if entry is None:
        raise Rejected(Stage.NO_APP_FILE, f"There is no file {app_file}. Add it, or set app_file in the card.")
    requirements = await _requirements(folder, repo.head_sha)
    if card.get("sdk") == "gradio":
        requirements = f"{_gradio(card)}\n{requirements}"
    return Configuration(repo.head_sha, app_file, _python(card, pythons), requirements)


async def _requirements(folder: Path, sha: str) -> str:
    entry, content = await file_at(folder, sha, REQUIREMENTS)
    if entry is None:
        return ""
    if content is None or len(content) > MAX_REQUIREMENTS_BYTES:
        # The beginning of a name may be the name of another package.
        message = f"{REQUIREMENTS} must be a file of at most {MAX_REQUIREMENTS_BYTES // 1024} KiB."
        raise Rejected(Stage.CONFIG_ERROR, message)
    return content.decode("utf-8", "replace")


def _app_file(card: dict[str, Any]) -> str:
    app_file = card.get("app_file", DEFAULT_APP_FILE)
    try:
        return check_path(str(app_file))
    except Unprocessable as error:
        raise Rejected(Stage.CONFIG_ERROR, f"app_file in the card: {error.message}") from None


def _python(card: dict[str, Any], pythons: list[str]) -> str:
    wanted = card.get("python_version")
    if wanted is None:
        return pythons[0]
    match = _VERSION.match(str(wanted))
    if match is None or match[1] not in pythons:
        available = ", ".join(pythons)
        raise Rejected(
            Stage.CONFIG_ERROR,
            f"python_version {str(wanted)[:20]} is not installed on this hub. Use one of {available}.",
        )
    return match[1]


def _gradio(card: dict[str, Any]) -> str:
    version = card.get("sdk_version")
    if version is None:
        return "gradio"
    if not _SDK_VERSION.match(str(version)):
        raise Rejected(Stage.CONFIG_ERROR, "sdk_version in the card is not a version.")
    return f"gradio=={version}"


async def write_archive(folder: Path, sha: str, target: Path, limit: int) -> None:
    """Write the files of a commit to an archive; Rejected if it would be larger than `limit`.

    A small repo can have a tree of any size: it may name the same file or folder many times.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with target.open("wb") as file:
            is_whole = await program.copy_output(["archive", "--format=tar", sha], folder, file, limit, ARCHIVE_SECONDS)
    except Unavailable:
        message = f"The files of the Space could not be read within {ARCHIVE_SECONDS:.0f} s."
        raise Rejected(Stage.BUILD_ERROR, message) from None
    if not is_whole:
        raise Rejected(Stage.BUILD_ERROR, f"The files of the Space are larger than {limit // MIB:,} MiB.")


def environment_for(repo: Repo, base_url: str, settings: dict[str, str]) -> dict[str, str]:
    """The variables and secrets of a Space, and what it needs to know about this hub."""
    address = urlsplit(hosted_url(base_url, repo.full_name))
    return {
        **settings,
        "SPACE_ID": repo.full_name,
        "SPACE_HOST": address.netloc + address.path,
        "HF_ENDPOINT": base_url,
        "HUBGATE_ENDPOINT": base_url,
    }
