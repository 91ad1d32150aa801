"""`hubgate migrate`, `doctor` and `admin`, on both engines, with a server running or not."""

import json
import shlex
import sqlite3
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SECRET_KEY, Engine
from tests.bed.operator import Operator
from tests.bed.processes import HUBGATE, environment, hub_process, hubgate


def test_doctor_passes_on_a_fresh_hub(operator: Operator) -> None:
    said = operator.json("doctor")
    assert said["ok"]
    assert {check["check"] for check in said["checks"]} == {
        "configuration",
        "permissions",
        "large files",
        "public address",
        "spaces",
        "mail",
        "git",
        "database",
        "clock",
        "keys",
        "audit log",
        "webhooks",
    }


def test_doctor_names_each_failure(operator: Operator) -> None:
    (operator.folder / "data").chmod(0o755)
    said = operator.run("doctor", "--base-url", "http://hub.example")
    assert said.returncode == 1
    assert "✕ fail permissions" in said.stdout
    assert "! warn public address: http://hub.example is plain http" in said.stdout
    (operator.folder / "data").chmod(0o700)
    # In a container, where the hub listens on all addresses.
    said = operator.run("doctor", "--host", "0.0.0.0", "--port", "8000")
    assert "but its links point to http://127.0.0.1:8000" in said.stdout
    said = operator.run("doctor", "--host", "0.0.0.0", "--base-url", "http://127.0.0.1:9000")
    assert "ok   public address: http://127.0.0.1:9000" in said.stdout, "set on purpose"
    other = operator.run("doctor", HUBGATE_SECRET_KEY="another secret of at least thirty-two characters")
    assert other.returncode == 1
    assert "cannot be opened. Restore the secret that it was sealed with." in other.stdout


def test_keys_rotate_with_overlap_and_are_published_at_once(operator: Operator) -> None:
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        (first,) = operator.json("admin", "keys", "list")
        assert first["state"] == "signing"
        fresh = operator.json("admin", "keys", "rotate")
        assert fresh["state"] == "waiting"
        published = [key["kid"] for key in httpx.get(f"{hub.url}/oauth/jwks").json()["keys"]]
        assert published == [first["kid"], fresh["kid"]]
        assert [key["state"] for key in operator.json("admin", "keys", "list")] == ["signing", "waiting"]
        # Leaked: it leaves at once, and the next one signs at once.
        assert operator.json("admin", "keys", "revoke", first["kid"]) == {"revoked": first["kid"]}
        assert [key["kid"] for key in httpx.get(f"{hub.url}/oauth/jwks").json()["keys"]] == [fresh["kid"]]
        assert [key["state"] for key in operator.json("admin", "keys", "list")] == ["revoked", "signing"]
        # The last one: a replacement is made in the same breath.
        operator.json("admin", "keys", "revoke", fresh["kid"])
        (last,) = httpx.get(f"{hub.url}/oauth/jwks").json()["keys"]
        assert last["kid"] not in published
        assert last["alg"] == "RS256"
        assert hub.stop() == 0


def test_revoking_an_unknown_key_is_one_line(operator: Operator) -> None:
    refused = operator.run("admin", "keys", "revoke", "nonsense")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "error: Signing key nonsense not found, or it was already revoked.\n"


def test_the_server_secret_rotates(operator: Operator) -> None:
    new = "a new secret of more than thirty-two characters"
    both = f"{new},{SECRET_KEY}"
    assert operator.json("admin", "keys", "reseal", HUBGATE_SECRET_KEY=both) == {"resealed": 1}
    assert operator.json("admin", "keys", "reseal", HUBGATE_SECRET_KEY=both) == {"resealed": 0}
    assert operator.json("doctor", HUBGATE_SECRET_KEY=new)["ok"]
    assert operator.run("doctor").returncode == 1


def test_reseal_without_the_old_secret_names_the_lost_key(operator: Operator) -> None:
    (key,) = operator.json("admin", "keys", "list")
    refused = operator.run("admin", "keys", "reseal", HUBGATE_SECRET_KEY="another secret of thirty-two characters")
    says = f"error: No configured secret opens the signing keys {key['kid']}; everything else was resealed.\n"
    assert (refused.returncode, refused.stderr) == (1, says)


def test_hub_does_not_start_with_the_wrong_secret(operator: Operator) -> None:
    refused = operator.run("serve", "--port", "0", HUBGATE_SECRET_KEY="another secret of thirty-two characters")
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: The server secret does not open this hub's signing key. Set the secret it was sealed with.\n"
    )


def test_secret_is_generated_only_with_sqlite(engine: Engine, tmp_path: Path) -> None:
    flags = ["--port", "0", "--database-url", engine.empty_url()]
    if engine.name == "sqlite":
        with hub_process(tmp_path, "--deliver", "off", *flags) as hub:
            assert hub.stop() == 0
        assert (tmp_path / "var/secret.key").exists()
    else:
        refused = hubgate("serve", *flags, cwd=tmp_path)
        assert refused.returncode == 1
        assert refused.stderr.startswith("error: HUBGATE_SECRET_KEY must be set with a database server")
        assert not (tmp_path / "var/secret.key").exists()


def test_keys_are_not_created_with_the_wrong_secret(operator: Operator) -> None:
    (key,) = operator.json("admin", "keys", "list")
    other = "another secret of thirty-two characters"
    for command in (["rotate"], ["revoke", key["kid"]]):
        refused = operator.run("admin", "keys", *command, HUBGATE_SECRET_KEY=other)
        assert refused.returncode == 1
        assert "does not open this hub's signing key" in refused.stderr
    assert operator.json("admin", "keys", "list") == [key]


def test_failed_start_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    if engine.name == "postgres":
        url = engine.empty_url()
        assert hubgate("serve", "--port", "0", "--database-url", url, cwd=tmp_path).returncode == 1
        assert "is empty" in hubgate("doctor", "--database-url", url, "--secret-key", SECRET_KEY, cwd=tmp_path).stdout
    else:
        assert hubgate("serve", "--port", "0", "--data-dir", "/proc", cwd=tmp_path).returncode == 1


def test_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/file").write_text("x")
    refused = hubgate("serve", "--port", "0", "--data-dir", "theirs", cwd=tmp_path)
    assert refused.returncode == 1
    assert f"{tmp_path / 'theirs'} is not empty, and not a hub's data folder" in refused.stderr
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["file"]


def test_doctor_prints_json_on_every_failure(tmp_path: Path) -> None:
    done = hubgate("doctor", "--json", "--port", "x", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["checks"][0]["check"] == "configuration"
    empty = hubgate("doctor", "--json", cwd=tmp_path)
    assert json.loads(empty.stdout)["ok"] is False
    assert list(tmp_path.iterdir()) == []


def test_unencodable_characters_and_a_full_disk_cause_no_traceback(operator: Operator) -> None:
    assert operator.run("doctor", PYTHONIOENCODING="ascii").returncode == 0
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*HUBGATE, "doctor"],
            cwd=operator.folder,
            env=environment(**operator.variables),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_backups_do_not_overwrite_the_hub_itself(tmp_path: Path) -> None:
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    for target in ("var/hubgate.db", "var/backup.tar", "/dev/null", "."):
        refused = hubgate("admin", "backup", target, cwd=tmp_path)
        assert refused.returncode == 1
        assert refused.stderr.startswith("error: ")
    named = hubgate("admin", "backup", "x.tar", "--with-keys", "--secret-key", SECRET_KEY, cwd=tmp_path)
    assert "Back it up yourself" in named.stderr
    assert hubgate("doctor", cwd=tmp_path).returncode == 0


def test_lost_secret_is_never_replaced_silently(tmp_path: Path) -> None:
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    (tmp_path / "var/secret.key").rename(tmp_path / "kept")
    for command in (["serve", "--port", "0"], ["admin", "keys", "list"]):
        refused = hubgate(*command, cwd=tmp_path)
        assert refused.returncode == 1
        assert refused.stderr.startswith(f"error: {tmp_path / 'var/secret.key'} is missing. Restore it from a backup")
    assert "secret.key is missing" in hubgate("doctor", cwd=tmp_path).stdout
    assert not (tmp_path / "var/secret.key").exists()
    (tmp_path / "kept").rename(tmp_path / "var/secret.key")
    assert hubgate("doctor", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("content", [b"", b"short", b"\xff\xfe" * 40, b"k" * 40 + b",short"])
def test_damaged_secret_is_a_one_line_error(tmp_path: Path, content: bytes) -> None:
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    (tmp_path / "var/secret.key").write_bytes(content)
    refused = hubgate("serve", "--port", "0", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1


def test_migrate_prints_its_result(engine: Engine, tmp_path: Path) -> None:
    url = engine.empty_url()
    first = hubgate("migrate", "--database-url", url, cwd=tmp_path)
    assert (first.returncode, first.stdout) == (0, "The database was migrated.\n")
    again = hubgate("migrate", "--database-url", url, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "The database is up to date.\n")


def test_a_migrated_hub_can_be_administered_before_its_first_start(tmp_path: Path) -> None:
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    assert hubgate("doctor", cwd=tmp_path).returncode == 0
    made = hubgate("admin", "keys", "list", "--json", cwd=tmp_path)
    assert len(json.loads(made.stdout)) == 1
    secret = (tmp_path / "var/secret.key").read_bytes()
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    with hub_process(tmp_path, "--deliver", "off") as hub:
        assert hub.stop() == 0
    assert hubgate("admin", "keys", "list", "--json", cwd=tmp_path).stdout == made.stdout
    assert (tmp_path / "var/secret.key").read_bytes() == secret


def test_migrate_creates_no_secret_if_data_is_sealed(tmp_path: Path) -> None:
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    (tmp_path / "var/secret.key").unlink()
    assert hubgate("migrate", cwd=tmp_path).stdout == "The database is up to date.\n"
    assert not (tmp_path / "var/secret.key").exists()
    assert "secret.key is missing" in hubgate("admin", "user", "list", cwd=tmp_path).stderr


def test_commands_load_neither_git_nor_pages(tmp_path: Path) -> None:
    """What only repos need makes every command start later, and the parent of `serve` too."""
    for arguments in (["migrate"], ["admin", "user", "list"]):
        command = [*HUBGATE[:1], "-X", "importtime", *HUBGATE[1:], *arguments]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, cwd=tmp_path)
        assert "hubgate.server.startup" in done.stderr
        assert not {"pygit2", "yaml", "jinja2", "starlette.requests"}.intersection(done.stderr.split())


def test_database_is_not_migrated_under_a_running_server(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--deliver", "off") as hub:
        database = sqlite3.connect(tmp_path / "var/hubgate.db", isolation_level=None)
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table not in ("signing_keys", "alembic_version"):
                database.execute(f"DROP TABLE IF EXISTS {table}")
        database.execute("UPDATE alembic_version SET version_num = '0001'")
        database.close()
        for command in (["migrate"], ["serve", "--port", "0"]):
            refused = hubgate(*command, cwd=tmp_path)
            assert (refused.returncode, refused.stderr) == (
                1,
                f"error: A server is using {tmp_path / 'var'}. Stop it first.\n",
            )
        assert httpx.get(f"{hub.url}/readyz").status_code == 503
        hub.stop()
    with hub_process(tmp_path, "--deliver", "off") as hub:
        assert httpx.get(f"{hub.url}/readyz").status_code == 200
        assert hub.stop() == 0


def test_admin_before_the_first_start_says_what_to_do(engine: Engine, tmp_path: Path) -> None:
    refused = hubgate(
        "admin", "keys", "list", "--database-url", engine.empty_url(), "--secret-key", SECRET_KEY, cwd=tmp_path
    )
    assert refused.returncode == 1
    cure = "hubgate serve" if engine.name == "sqlite" else "run: hubgate migrate"
    assert cure in refused.stderr
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing behind"


def test_backup_while_serving_and_restore_elsewhere(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--deliver", "off") as hub:
        before = httpx.get(f"{hub.url}/oauth/jwks").json()
        done = hubgate("admin", "backup", "hub.tar", "--with-keys", "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["withKeys"] is True
        held = hubgate("admin", "restore", "hub.tar", cwd=tmp_path)
        assert (held.returncode, held.stderr) == (1, f"error: A server is using {tmp_path / 'var'}. Stop it first.\n")
        assert hub.stop() == 0
    kept = hubgate("admin", "restore", "hub.tar", cwd=tmp_path)
    assert "Restore into an empty folder" in kept.stderr
    restored = hubgate("admin", "restore", "hub.tar", "--data-dir", "the other", cwd=tmp_path)
    assert restored.returncode == 0, restored.stderr
    command = shlex.split(restored.stdout.partition("Next, run: ")[2])
    assert command == ["hubgate", "doctor", "--data-dir", str(tmp_path / "the other")], "as a shell reads it"
    with hub_process(tmp_path, "--deliver", "off", "--data-dir", "the other") as hub:
        assert httpx.get(f"{hub.url}/oauth/jwks").json() == before
        assert hub.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ([], 2, "usage: hubgate COMMAND"),
        (["nonsense"], 2, "error: unknown command 'nonsense'."),
        (["serve", "--nonsense"], 2, "unrecognized arguments: --nonsense"),
        (["admin"], 2, "error: the following arguments are required: SUBJECT"),
        (["admin", "backup", "/dev/null"], 1, "There is no database"),
        (["admin", "restore", "missing.tar"], 1, "error: There is no archive missing.tar."),
        (["admin", "backup", "x.tar"], 1, "/var/hubgate.db to back up."),
    ],
)
def test_bad_usage(tmp_path: Path, arguments: list[str], status: int, says: str) -> None:
    done = hubgate(*arguments, cwd=tmp_path)
    assert done.returncode == status
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_help_and_version(tmp_path: Path) -> None:
    assert "hubgate 0." in hubgate("--version", cwd=tmp_path).stdout
    assert "admin" in hubgate("--help", cwd=tmp_path).stdout
