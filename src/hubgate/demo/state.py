"""The demo's folder, and what the demo remembers between starts: passwords, tokens and ids, in one private file."""

import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hubgate.server.errors import StartupError
from hubgate.server.storage import data_folder

NAME = "demo.json"
# The owner of each of the demo's webhooks, as the path of its webhooks in the API: an organization, and a user, whose
# home page shows it.
WEBHOOKS = {"train": "/api/organizations/acme/settings/webhooks", "chat": "/api/settings/webhooks"}


def _new_password() -> str:
    return secrets.token_hex(6)


def _new_secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass
class State:
    # False while the folder is being filled, and after a start that was interrupted.
    complete: bool = False
    # By user.
    passwords: dict[str, str] = field(default_factory=lambda: {"ada": _new_password(), "lin": _new_password()})
    tokens: dict[str, str] = field(default_factory=dict)
    # The app that users sign in to, and the organization's app that exchanges tokens.
    app_id: str = ""
    app_secret: str = ""
    exchange_id: str = ""
    exchange_secret: str = ""
    # By the path of the receiver.
    webhooks: dict[str, str] = field(default_factory=dict)
    webhook_secret: str = field(default_factory=_new_secret)

    def save(self, folder: Path) -> None:
        write_private(folder / NAME, json.dumps(asdict(self), indent=2))


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically, readable only by its owner."""
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def open_folder(folder: Path, *, reset: bool) -> State:
    """The state of an earlier start, or a new one in an empty folder. Nothing but a demo's folder is ever emptied."""
    data_folder.require_writable(folder)
    with data_folder.exclusive_lock(folder):
        state = _load(folder / NAME)
        if state is not None and state.complete and not reset:
            return state
        others = {path.name for path in folder.iterdir()} - {data_folder.LOCK_NAME}
        if state is None and others:
            raise StartupError(f"{folder} is not empty, and not a demo's folder. Choose another: --data-dir.")
        for name in others:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        state = State()
        state.save(folder)
        return state


def _load(path: Path) -> State | None:
    try:
        return State(**json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        # An empty state that is not complete: the folder is a demo's, and is filled again.
        if isinstance(error, OSError):
            raise StartupError(f"Cannot read {path}: {error.strerror}.") from error
        return State()
