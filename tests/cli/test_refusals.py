"""A start that fails prints one line and damages nothing."""

import socket
import subprocess
from pathlib import Path

import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import SECRET_KEY, Engine, opened_database
from tests.bed.processes import HUBGATE, environment, hub_process, hubgate
from tests.cli.test_serve import healthy

REFUSALS: dict[str, tuple[list[str], dict[str, str], str]] = {
    "unknown variable": ([], {"HUBGATE_COLOUR": "blue"}, "HUBGATE_COLOUR is not a setting"),
    "data folder is a file": (["--data-dir", "file"], {}, "/file: File exists"),
    "data folder below a file": (["--data-dir", "file/below"], {}, "/file/below: Not a directory"),
    "database is not one": (["--database-url", "sqlite:///file"], {}, "Cannot open the database file file"),
    "postgres is down": (
        ["--database-url", "postgresql:///x?host=/nowhere", "--secret-key", SECRET_KEY],
        {},
        "Cannot use the database: [Errno 2]",
    ),
    "an address that is not ours": (["--host", "203.0.113.1"], {}, "Cannot listen on 203.0.113.1"),
    "an invalid host": (["--host", "no such host"], {}, "Cannot listen on no such host"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_failed_start_prints_one_clear_line(tmp_path: Path, what: str) -> None:
    flags, variables, says = REFUSALS[what]
    (tmp_path / "file").write_text("this is no database, it is only some text that is long enough" * 20)
    before = (tmp_path / "file").read_bytes()
    refused = hubgate("serve", "--port", "0", *flags, cwd=tmp_path, **variables)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ")
    assert says in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert (tmp_path / "file").read_bytes() == before


def test_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = hubgate("serve", "--port", port, cwd=tmp_path)
    says = (
        f"Cannot listen on 127.0.0.1 port {port}: Address already in use. Choose another port: --port or HUBGATE_PORT."
    )
    assert (refused.returncode, refused.stderr) == (1, f"error: {says}\n")


def test_second_hub_on_the_same_port_is_rejected(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--deliver", "off") as hub:
        refused = hubgate("serve", "--port", hub.url.rpartition(":")[2], cwd=tmp_path)
        assert refused.returncode == 1
        assert "Address already in use" in refused.stderr


def set_revision(url: str, revision: str) -> None:
    async def change() -> None:
        async with opened_database(url) as db:
            sql = "UPDATE alembic_version SET version_num = :revision"
            await db.write(lambda tx: tx.exec(sql, {"revision": revision}))

    run_blocking(change())


def test_newer_database_is_rejected_on_both_engines(engine: Engine, tmp_path: Path) -> None:
    url = engine.fresh_url()
    set_revision(url, "9999")
    refused = hubgate("serve", "--port", "0", "--database-url", url, "--secret-key", SECRET_KEY, cwd=tmp_path)
    says = "The database was written by a newer version of hubgate. Install that version or a later one."
    assert (refused.returncode, refused.stderr) == (1, f"error: {says}\n")


def test_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    """A limit on file sizes gives the same refusals as a full disk, without needing one."""
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *HUBGATE, "serve", "--port", "0"],
        cwd=tmp_path,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert limited.returncode == 1
    assert limited.stderr.startswith("error: ")
    assert limited.stderr.count("\n") == 1
    with hub_process(tmp_path, "--deliver", "off") as hub:
        assert healthy(hub.url), "nothing was damaged"
        assert hub.stop() == 0
