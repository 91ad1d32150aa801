"""Files that a hub creates are private to its user, even with a permissive umask."""

import json
import stat
import tarfile
from pathlib import Path

import httpx
import pytest
from tests.bed import fork_server
from tests.bed.engines import SECRET_KEY, Engine
from tests.bed.lean_http import LeanClient
from tests.bed.people import PASSWORD
from tests.bed.processes import HUBGATE, HubProcess, deliver_process, environment, hub_process, hubgate, until
from tests.bed.repos import create_commit, create_repo, send_large

OPEN = 0o000


def run(folder: Path, *arguments: str, stdin: str = "", **variables: str) -> str:
    """What a command printed, started with an umask that keeps nobody out."""
    status, out, err = fork_server.run(
        [*HUBGATE, *arguments], folder, environment(**variables), stdin.encode(), seconds=60, umask=OPEN
    )
    assert status == 0, err
    return out.decode()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(folder: Path) -> list[str]:
    everything = [folder, *folder.rglob("*")]
    return [f"{path} {mode_of(path):o}" for path in everything if mode_of(path) & 0o077]


def filled(hub: HubProcess, token: str) -> None:
    with LeanClient(base_url=hub.url, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        create_repo(client, "tiny")
        create_commit(client, "ada/tiny", {"config.json": b"{}", "big.txt": b"x" * 2_000_000})
        send_large(client, "ada/tiny", b"large")


def test_everything_a_hub_creates_is_private(engine: Engine, tmp_path: Path) -> None:
    on_sqlite = engine.name == "sqlite"
    shared = {} if on_sqlite else {"HUBGATE_DATABASE_URL": engine.empty_url(), "HUBGATE_SECRET_KEY": SECRET_KEY}
    data = tmp_path / "var"
    run(tmp_path, "migrate", **shared)
    made = ("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin")
    run(tmp_path, *made, stdin=PASSWORD, **shared)
    run(tmp_path, "admin", "user", "reset-password", "ada", **shared)
    token = json.loads(run(tmp_path, "admin", "token", "create", "ada", "--role", "write", "--json", **shared))["token"]
    with hub_process(tmp_path, umask=OPEN, **shared) as hub:
        filled(hub, token)
        with hub.client() as client:
            page = client.get("/join").text
            field = page.partition('name="csrf" value="')[2].partition('"')[0]
            form = {"csrf": field, "username": "bob", "email": "bob@example.org", "password": PASSWORD}
            assert client.post("/join", data=form).status_code == 200
        until(lambda: any("bob@example.org" in mail.read_text() for mail in (data / "mail").glob("*.eml")))
        assert open_to_others(data) == []
        assert hub.stop() == 0
    run(tmp_path, "doctor", **shared)
    assert open_to_others(data) == []
    names = {str(path.relative_to(data)) for path in data.rglob("*") if path.is_file()}
    assert ("hubgate.db" in names, "secret.key" in names) == (on_sqlite, on_sqlite)
    for folder, count in (("repos/", 5), ("lfs/", 1), ("mail/", 2)):
        assert sum(name.startswith(folder) for name in names) >= count, (folder, names)


def test_deliver_creates_private_files(engine: Engine, tmp_path: Path) -> None:
    shared = {"HUBGATE_SECRET_KEY": SECRET_KEY}
    shared |= {} if engine.name == "sqlite" else {"HUBGATE_DATABASE_URL": engine.empty_url()}
    with deliver_process(tmp_path, umask=OPEN, **shared) as command:
        assert command.stdout is not None
        assert b"is running" in command.stdout.readline()
        assert mode_of(tmp_path / "var") == 0o700
        assert open_to_others(tmp_path / "var") == []
        command.terminate()
        assert command.wait(60) == 0


def test_backups_and_restored_files_are_private(tmp_path: Path) -> None:
    run(tmp_path, "migrate")
    made = ("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin")
    run(tmp_path, *made, stdin=PASSWORD)
    token = json.loads(run(tmp_path, "admin", "token", "create", "ada", "--role", "write", "--json"))["token"]
    with hub_process(tmp_path, umask=OPEN) as hub:
        filled(hub, token)
        assert hub.stop() == 0
    for path in (tmp_path / "var/repos").rglob("*"):
        # As an older version left them.
        path.chmod(0o755 if path.is_dir() else 0o644)
    run(tmp_path, "admin", "backup", "hub.tar", "--with-keys")
    assert mode_of(tmp_path / "hub.tar") == 0o600
    with tarfile.open(tmp_path / "hub.tar") as archive:
        assert any(member.mode & 0o077 for member in archive)
    (tmp_path / "new").mkdir()
    (tmp_path / "new").chmod(0o777)
    run(tmp_path, "admin", "restore", "hub.tar", "--data-dir", "new")
    assert mode_of(tmp_path / "new") == 0o700
    assert open_to_others(tmp_path / "new") == []
    with hub_process(tmp_path, "--deliver", "off", "--data-dir", "new", umask=OPEN) as hub:
        assert httpx.get(f"{hub.url}/ada/tiny/resolve/main/config.json").content == b"{}"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_open_data_folder_is_made_private_at_the_start(tmp_path: Path, mode: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for _ in range(2):
        data.chmod(mode)
        with hub_process(tmp_path, "--deliver", "off", "--data-dir", "data", umask=OPEN) as hub:
            assert mode_of(data) == 0o700
            assert hub.stop() == 0
    said = [line for line in hub.errors.splitlines() if "data folder" in line]
    assert len(said) == 2, "one line for each start"
    assert all(str(data) in line and f"{mode:o}" in line for line in said), said


def test_a_private_data_folder_is_not_mentioned(tmp_path: Path) -> None:
    with hub_process(tmp_path, umask=OPEN) as hub:
        assert hub.stop() == 0
    assert "data folder" not in hub.errors


def test_folder_with_other_folders_is_reported_and_left_open(tmp_path: Path) -> None:
    """Somebody may have chosen a home folder, or /var."""
    data = tmp_path / "home"
    (data / "pictures").mkdir(parents=True)
    (data / "repos").mkdir()
    data.chmod(0o755)
    with hub_process(tmp_path, "--deliver", "off", "--data-dir", "home", umask=OPEN) as hub:
        assert mode_of(data) == 0o755
        assert hub.stop() == 0
    (said,) = [line for line in hub.errors.splitlines() if "data folder" in line]
    assert "pictures" in said
    assert "chmod 700" in said


def test_var_is_not_mistaken_for_a_hubs_folder(tmp_path: Path) -> None:
    """From / it is the default folder."""
    for name in ("mail", "log"):
        (tmp_path / "var" / name).mkdir(parents=True)
    done = hubgate("serve", "--port", "0", cwd=tmp_path)
    assert done.returncode == 1
    assert "not a hub's data folder" in done.stderr
    assert sorted(path.name for path in (tmp_path / "var").rglob("*")) == ["log", "mail"]
