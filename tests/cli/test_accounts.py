"""`hubgate admin user | invite | org | billing | token`: on both engines, with immediate effect on a running server."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import SECRET_KEY, SqliteEngine, opened_database, settings_for
from tests.bed.mailserver import mail_server
from tests.bed.operator import Operator
from tests.bed.people import submit
from tests.bed.processes import HUBGATE, HubProcess, environment, hub_process, read_terminal, until
from tests.bed.running_hub import run_hub

from hubgate.server.clock import MINUTE, system_clock

PASSWORD = b"correct horse battery"


@pytest.fixture
def hub(operator: Operator) -> Iterator[HubProcess]:
    """Without the background process, which would send some of the mail that the commands are to send."""
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        yield hub


@pytest.fixture
def sqlite_operator(sqlite_template: Path, tmp_path: Path) -> Operator:
    """For what has nothing to do with the engine."""
    return Operator(SqliteEngine(sqlite_template, tmp_path), tmp_path)


def make_user(operator: Operator, name: str, *flags: str) -> Any:
    return operator.json("admin", "user", "create", name, "--email", f"{name}@example.org", "--verified", *flags)


def whoami(hub: HubProcess, token: str) -> httpx.Response:
    return httpx.get(f"{hub.url}/api/whoami-v2", headers={"authorization": f"Bearer {token}"})


def audit_of(operator: Operator, org_id: str) -> list[tuple[str, str, str | None]]:
    async def read() -> list[tuple[str, str, str | None]]:
        async with opened_database(operator.variables["HUBGATE_DATABASE_URL"]) as db:
            sql = "SELECT type, author_name, author_id FROM audit_entries WHERE org_id = :id ORDER BY created_at, id"
            rows = await db.read_long(lambda tx: tx.all(sql, {"id": org_id}))
            return [(row["type"], row["author_name"], row["author_id"]) for row in rows]

    return run_blocking(read())


def test_user_commands(operator: Operator, hub: HubProcess) -> None:
    email = ("--email", "Ada@Example.org")
    made = operator.json("admin", "user", "create", "Ada", *email, "--fullname", " Ada  L ", "--operator")
    assert made | {"id": "", "createdAt": ""} == {
        "id": "",
        "name": "Ada",
        "fullname": "Ada L",
        "email": "ada@example.org",
        "emailVerified": False,
        "operator": True,
        "canPay": False,
        "createdAt": "",
        "disabledAt": None,
    }
    token = operator.json("admin", "token", "create", "ada", "--role", "write", "--name", "laptop")["token"]
    said = whoami(hub, token).json()
    assert (said["id"], said["name"], said["emailVerified"], said["canPay"]) == (made["id"], "Ada", False, False)

    assert operator.json("admin", "user", "verify", "ADA")["emailVerified"] is True
    assert operator.json("admin", "billing", "set", "ada", "on")["canPay"] is True
    said = whoami(hub, token).json()
    assert (said["emailVerified"], said["canPay"]) == (True, True)

    disabled = operator.json("admin", "user", "disable", "ada")
    assert disabled["disabledAt"].endswith("Z")
    assert whoami(hub, token).status_code == 401
    assert operator.json("admin", "user", "list") == [disabled]
    assert operator.json("admin", "user", "enable", "ada") == {**disabled, "disabledAt": None}
    assert whoami(hub, token).status_code == 200

    assert operator.json("admin", "user", "delete", "ada") == {"deleted": "Ada", "id": made["id"]}
    assert whoami(hub, token).status_code == 401
    assert operator.json("admin", "user", "list") == []
    again = operator.json("admin", "user", "create", "ada", "--email", "other@example.org")
    assert again["id"] != made["id"], "held for less than a day and without repos, the name is free"
    assert hub.stop() == 0


def test_password_is_read_from_standard_input(operator: Operator, hub: HubProcess) -> None:
    arguments = ("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin")
    operator.json(*arguments, stdin=PASSWORD + b"\r\n")
    with hub.client() as client:
        assert submit(client, "/login", username="ada", password=PASSWORD.decode()).status_code == 303
        assert client.get("/settings/profile").status_code == 200
        operator.json("admin", "user", "disable", "ada")
        assert client.get("/settings/profile").status_code == 303
        operator.json("admin", "user", "enable", "ada")
        assert client.get("/settings/profile").status_code == 303, "a session does not come back"
    assert hub.stop() == 0


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        (b"", "The password on standard input is empty. Write it as one line."),
        (b"\n", "The password on standard input is empty. Write it as one line."),
        (b"short\n", "A password must have 8 to 1,024 characters."),
        (b"x" * 1025, "A password must have 8 to 1,024 characters."),
        (b"x" * 100_000, "Standard input has more than one line. Write only the password to it."),
        (b"correct horse\nbattery\n", "Standard input has more than one line. Write only the password to it."),
        (b"\xff" * 12, "The password on standard input is not UTF-8."),
    ],
    ids=range(7),
)
def test_invalid_password_creates_no_account(sqlite_operator: Operator, stdin: bytes, says: str) -> None:
    arguments = ("admin", "user", "create", "ada", "--email", "ada@example.org", "--password-stdin")
    assert sqlite_operator.error_message(*arguments, stdin=stdin) == says
    assert sqlite_operator.json("admin", "user", "list") == []


def test_password_is_not_echoed_on_a_terminal(sqlite_operator: Operator) -> None:
    ours, theirs = pty.openpty()
    arguments = ["admin", "user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin"]
    typing = subprocess.Popen(
        [*HUBGATE, *arguments],
        cwd=sqlite_operator.folder,
        env=environment(**sqlite_operator.variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"Password: " not in shown:
        shown += os.read(ours, 1024)
    os.write(ours, PASSWORD + b"\n")
    assert typing.wait(60) == 0
    shown += read_terminal(ours)
    assert b"Created ada." in shown
    assert PASSWORD not in shown


def test_organization_commands(operator: Operator, hub: HubProcess) -> None:
    for name in ("ada", "bob"):
        make_user(operator, name)
    token = operator.json("admin", "token", "create", "bob", "--role", "read")["token"]

    def seen() -> list[tuple[str, str, str, bool]]:
        orgs = whoami(hub, token).json()["orgs"]
        return [(org["name"], org["roleInOrg"], org["plan"], org["canPay"]) for org in orgs]

    made = operator.json("admin", "org", "create", "acme", "--owner", "ada", "--fullname", "Acme", "--plan", "team")
    assert made | {"id": "", "createdAt": ""} == {
        "id": "",
        "name": "acme",
        "fullname": "Acme",
        "plan": "team",
        "canPay": False,
        "createdAt": "",
    }
    assert seen() == []
    added = operator.json("admin", "org", "add-member", "acme", "bob", "--role", "contributor")
    assert added == {"organization": "acme", "user": "bob", "role": "contributor"}
    assert seen() == [("acme", "contributor", "team", False)]
    operator.json("admin", "org", "add-member", "acme", "bob", "--role", "admin")
    operator.json("admin", "org", "set-plan", "acme", "enterprise")
    operator.json("admin", "billing", "set", "acme", "on")
    assert operator.json("admin", "org", "rename", "acme", "Apex")["name"] == "Apex"
    assert seen() == [("Apex", "admin", "enterprise", True)]
    assert operator.json("admin", "org", "list") == [
        {**made, "name": "Apex", "plan": "enterprise", "canPay": True, "members": 2}
    ]

    removed = operator.json("admin", "org", "remove-member", "apex", "ada")
    assert removed == {"organization": "Apex", "removed": "ada"}
    operator.json("admin", "org", "add-member", "apex", "ada", "--role", "admin")
    operator.json("admin", "user", "delete", "ada")

    assert operator.json("admin", "org", "delete", "apex") == {"deleted": "Apex", "id": made["id"]}
    assert seen() == []
    assert [entry[0] for entry in audit_of(operator, made["id"])] == [
        "org.create",
        "org.add_user",
        "org.change_role",
        "org.set_plan",
        "org.set_billing",
        "org.rename",
        "org.remove_user",
        "org.add_user",
        "org.remove_user",
        "org.delete",
    ]
    assert {entry[1:] for entry in audit_of(operator, made["id"])} == {("system", None)}
    assert hub.stop() == 0


def test_fine_grained_token_is_created_by_a_command(operator: Operator, hub: HubProcess) -> None:
    make_user(operator, "ada")
    organization = operator.json("admin", "org", "create", "acme", "--owner", "ada")["id"]
    create = ("admin", "token", "create", "ada", "--role")
    allowed = ("--allow", "everywhere=profile", "--allow", "acme=read-repos", "--allow", "acme=webhooks")
    made = operator.json(*create, "fineGrained", "--expires", "7", *allowed)
    said = whoami(hub, made["token"]).json()["auth"]
    assert said["expiresAt"] == made["expiresAt"]
    entity = {"_id": organization, "name": "acme", "type": "org"}
    limits = {"scoped": [{"entity": entity, "permissions": ["webhooks", "read-repos"]}], "global": ["profile"]}
    limits["canReadGatedRepos"] = False
    assert said["accessToken"]["fineGrained"] == made["fineGrained"] == limits
    for given, message in (
        (("fineGrained",), "Choose at least one permission."),
        (("fineGrained", "--allow", "acme=read-repo"), "There is no scope read-repo. Did you mean read-repos?"),
        (("fineGrained", "--allow", "club=jobs"), "ada is not a member of club."),
        (("fineGrained", "--allow", "ada/x=jobs"), "There is no repo ada/x, or you have no access to it."),
        (("read", "--allow", "ada=jobs"), "--allow needs --role fineGrained."),
        (("read", "--expires", "soon"), "Enter a date such as 2030-12-31."),
    ):
        assert operator.error_message(*create, *given) == message
    assert hub.stop() == 0


def test_token_commands(operator: Operator, hub: HubProcess) -> None:
    make_user(operator, "ada")
    made = operator.json("admin", "token", "create", "ada", "--role", "read", "--name", "laptop")
    token = made.pop("token")
    assert made | {"id": "", "createdAt": ""} == {
        "user": "ada",
        "id": "",
        "name": "laptop",
        "role": "read",
        "lastFour": token[-4:],
        "createdAt": "",
        "lastUsedAt": None,
        "lastUsedIp": None,
        "expiresAt": None,
    }
    piped = operator.run("admin", "token", "create", "ada", "--role", "write")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert whoami(hub, piped.stdout.strip()).json()["auth"]["accessToken"]["role"] == "write"
    assert whoami(hub, token).json()["auth"]["accessToken"]["displayName"] == "laptop"
    listed = operator.json("admin", "token", "list", "ada")
    assert {row["name"] for row in listed} == {"laptop", "created by the operator"}
    assert token not in json.dumps(listed)
    assert operator.json("admin", "token", "revoke", "ada", made["id"]) == {"revoked": made["id"]}
    assert whoami(hub, token).status_code == 401
    assert operator.error_message("admin", "token", "revoke", "ada", made["id"]) == "Token not found."
    operator.json("admin", "user", "disable", "ada")
    cure = "ada is disabled. First run: hubgate admin user enable ada"
    assert operator.error_message("admin", "token", "create", "ada", "--role", "read") == cure
    assert operator.error_message("admin", "user", "reset-password", "ada") == cure
    assert hub.stop() == 0


def test_invitation_and_reset_links_are_mailed_printed_and_work(operator: Operator, hub: HubProcess) -> None:
    """Without a server for it, mail is in the folder when the command ends."""
    variables = {"HUBGATE_BASE_URL": hub.url}
    make_user(operator, "ada")
    for command, to, way in (
        (("user", "reset-password", "ada"), "ada@example.org", "/reset/"),
        (("invite", "create", "eve@example.org"), "eve@example.org", "/invitations/"),
    ):
        made = operator.json("admin", *command, **variables)
        assert made["email"] == to
        assert made["expiresAt"].endswith("Z")
        assert made["link"].startswith(hub.url + way)
        (mail,) = [
            text for file in (operator.data_dir / "mail").iterdir() if f"\nTo: {to}\n" in (text := file.read_text())
        ]
        assert made["link"] in mail
        assert httpx.get(made["link"]).status_code == 200
    assert hub.stop() == 0


def test_errors_say_what_to_do(sqlite_operator: Operator) -> None:
    operator = sqlite_operator
    make_user(operator, "ada")
    operator.json("admin", "org", "create", "acme", "--owner", "ada")
    no_user = "User nobody not found. List all with: hubgate admin user list"
    no_org = "Organization nothing not found. List all with: hubgate admin org list"
    for command, says in {
        "user create admin --email x": "admin is already taken. This is not an e-mail address.",
        "user create -x --email x@example.org": None,
        "user create Acme --email x@example.org": "Acme is already taken.",
        "user create bob --email ADA@example.org": "ada@example.org already has an account.",
        "user disable nobody": no_user,
        "user delete acme": no_user.replace("nobody", "acme"),
        "invite create nonsense": "This is not an e-mail address.",
        "invite create ada@example.org": "ada@example.org already has an account.",
        "invite create eve@example.org --signup closed": (
            "HUBGATE_SIGNUP is closed, so nobody could accept the invitation. Run: hubgate admin user create"
        ),
        "org create ada --owner ada": "ada is already taken.",
        "org create other --owner nobody": no_user,
        "org set-plan nothing free": no_org,
        "org add-member acme nobody --role read": no_user,
        "org rename acme ada": "ada is already taken.",
        "org remove-member acme ada": "An organization needs an admin. Make someone else an admin first.",
        "org add-member acme ada --role read": "An organization needs an admin. Make someone else an admin first.",
        "user delete ada": "ada is the only admin of acme. "
        "First make someone else an admin there, or delete the organization.",
        "billing set nobody on": "User or organization nobody not found.",
        "token create nobody --role read": no_user,
        "token create ada --role god": None,
        "org set-plan acme gold": None,
        "org add-member acme ada": None,
        "billing set ada perhaps": None,
        "user": None,
    }.items():
        done = operator.run("admin", *command.split())
        assert (done.returncode, done.stdout) == (2 if says is None else 1, ""), done
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        if says is not None:
            assert done.stderr == f"error: {says}\n"


def test_lists_are_printed_as_tables(sqlite_operator: Operator) -> None:
    operator = sqlite_operator
    operator.run("admin", "user", "create", "ada", "--email", "ada@example.org", "--operator")
    make_user(operator, "bob")
    operator.run("admin", "user", "disable", "bob")
    operator.run("admin", "org", "create", "acme", "--owner", "ada")
    users = [line.split(maxsplit=3) for line in operator.run("admin", "user", "list").stdout.splitlines()]
    assert [row[:2] + row[3:] for row in users] == [
        ["NAME", "E-MAIL", "STATE"],
        ["ada", "ada@example.org", "address not confirmed, operator"],
        ["bob", "bob@example.org", "disabled"],
    ]
    orgs = [line.split()[:3] for line in operator.run("admin", "org", "list").stdout.splitlines()]
    assert orgs == [["NAME", "PLAN", "MEMBERS"], ["acme", "free", "1"]]


def test_slow_mail_server_does_not_delay_a_command(sqlite_operator: Operator, tmp_path: Path) -> None:
    operator = sqlite_operator
    with mail_server(tmp_path) as server:
        server.is_answering.clear()
        started = time.monotonic()
        operator.json("admin", "user", "list")
        usual = time.monotonic() - started
        arguments = ("admin", "user", "create", "ada", "--email", "ada@example.org")
        done = operator.run(*arguments, HUBGATE_SMTP_URL=server.url())
        assert (done.returncode, done.stderr) == (0, "")
        # It waits three seconds; the mail server has twenty to answer.
        assert time.monotonic() - started < 15 + 2 * usual
        assert len(server.received) == 1
        server.is_answering.set()
        _send_later(operator, server.url())
        first, second = server.received
        assert first.mail["Message-ID"] == second.mail["Message-ID"], "so that a repetition can be dropped"


def test_mail_of_a_killed_command_is_sent_by_another_process(operator: Operator, tmp_path: Path) -> None:
    with mail_server(tmp_path) as server:
        server.is_answering.clear()
        variables = {**operator.variables, "HUBGATE_SMTP_URL": server.url()}
        command = [*HUBGATE, "admin", "user", "create", "ada", "--email", "ada@example.org"]
        with subprocess.Popen(command, cwd=operator.folder, env=environment(**variables)) as creating:
            until(lambda: server.received)
            creating.send_signal(signal.SIGKILL)
        server.is_answering.set()
        _send_later(operator, server.url())
        assert len(server.received) == 2


def _send_later(operator: Operator, smtp_url: str, **given: str) -> None:
    """What the background process does some minutes later, and later again."""
    settings = settings_for(operator.variables["HUBGATE_DATABASE_URL"], operator.folder, smtp_url=smtp_url, **given)
    with run_hub(settings) as hub:
        hub.clock.now = system_clock() + 3 * MINUTE
        for _ in range(2):
            hub.call(lambda opened: opened.outbox.send_due())
            hub.clock.now += 3 * MINUTE


def test_queued_mail_is_resealed(operator: Operator, tmp_path: Path) -> None:
    new = "a new secret of more than thirty-two characters"
    with mail_server(tmp_path) as server:
        server.stop()
        arguments = ("admin", "user", "create", "ada", "--email", "ada@example.org")
        done = operator.run(*arguments, HUBGATE_SMTP_URL=server.url())
        assert done.returncode == 0
        assert "was not sent and will be retried" in done.stderr, "the operator may want to know"
        both = f"{new},{SECRET_KEY}"
        assert operator.json("admin", "keys", "reseal", HUBGATE_SECRET_KEY=both) == {"resealed": 2}
        assert operator.json("admin", "keys", "reseal", HUBGATE_SECRET_KEY=both) == {"resealed": 0}
        server.start()
        _send_later(operator, server.url(), secret_key=new)
        assert [received.recipient for received in server.received] == ["ada@example.org"]
