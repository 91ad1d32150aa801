"""`hubgate admin app`: on both engines, with immediate effect on a running server."""

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import SqliteEngine, opened_database
from tests.bed.operator import Operator
from tests.bed.processes import HUBGATE, HubProcess, environment, hub_process, read_terminal

REDIRECT = "https://app.example/callback"
AFTER_LOGOUT = "https://app.example/signed-out"


@pytest.fixture
def hub(operator: Operator) -> Iterator[HubProcess]:
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        yield hub


@pytest.fixture
def sqlite_operator(sqlite_template: Path, tmp_path: Path) -> Operator:
    """For what has nothing to do with the engine."""
    operator = Operator(SqliteEngine(sqlite_template, tmp_path), tmp_path)
    make_people(operator)
    return operator


def make_people(operator: Operator) -> None:
    operator.json("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified")
    operator.json("admin", "org", "create", "acme", "--owner", "ada", "--plan", "enterprise")


def error_at_token(hub: HubProcess, client_id: str, secret: str | None) -> str:
    form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id}
    if secret is not None:
        form["client_secret"] = secret
    return str(httpx.post(f"{hub.url}/oauth/token", data=form).json()["error"])


def audit_of(operator: Operator) -> list[tuple[str, str, str | None]]:
    async def read() -> list[tuple[str, str, str | None]]:
        async with opened_database(operator.variables["HUBGATE_DATABASE_URL"]) as db:
            sql = "SELECT type, author_name, author_id FROM audit_entries ORDER BY created_at, id"
            rows = await db.read_long(lambda tx: tx.all(sql))
            return [tuple(row) for row in rows if row["type"].startswith("oauth.")]

    return run_blocking(read())


def test_app_commands(operator: Operator, hub: HubProcess) -> None:
    make_people(operator)
    made = operator.json(
        "admin", "app", "create", "Notebook", "--owner", "ada", "--redirect-uri", REDIRECT,
        "--redirect-uri", "http://localhost/cb", "--scope", "openid", "--scope", "read-repos",
        "--post-logout-redirect-uri", AFTER_LOGOUT,
    )  # fmt: skip
    secret = made["client_secret"]
    assert list(made)[:2] == ["client_id", "client_secret"]
    described = {
        "client_id": made["client_id"],
        "name": "Notebook",
        "document": False,
        "self_registered": False,
        "owner": "ada",
        "organization": None,
        "redirect_uris": [REDIRECT, "http://localhost/cb"],
        "post_logout_redirect_uris": [AFTER_LOGOUT],
        "scopes": ["read-repos", "openid"],
        "extra_scopes": [],
        "confidential": True,
        "refresh_tokens": False,
        "token_exchange": False,
        "created_at": made["created_at"],
    }
    assert made == {**described, "client_secret": secret}
    assert operator.json("admin", "app", "list") == [described]
    assert error_at_token(hub, made["client_id"], secret) == "invalid_grant"

    refreshed = operator.json("admin", "app", "refresh-secret", made["client_id"])
    assert refreshed == {**described, "client_secret": refreshed["client_secret"]}
    assert error_at_token(hub, made["client_id"], secret) == "invalid_client"
    assert error_at_token(hub, made["client_id"], refreshed["client_secret"]) == "invalid_grant"

    deleted = operator.json("admin", "app", "delete", made["client_id"])
    assert deleted == {"deleted": made["client_id"], "name": "Notebook"}
    assert error_at_token(hub, made["client_id"], refreshed["client_secret"]) == "invalid_client"
    assert operator.json("admin", "app", "list") == []
    assert hub.stop() == 0


def test_public_app_with_a_chosen_client_id(operator: Operator, hub: HubProcess) -> None:
    make_people(operator)
    create = ("admin", "app", "create", "Tool", "--owner", "ada", "--public", "--client-id", "my-tool.1")
    made = operator.json(*create, "--refresh-tokens")
    assert made["refresh_tokens"] is True
    assert (made["client_id"], made["client_secret"], made["confidential"]) == ("my-tool.1", None, False)
    assert made["scopes"] == ["profile", "openid"]
    assert error_at_token(hub, "my-tool.1", None) == "invalid_grant"
    assert operator.error_message(*create) == "The client ID my-tool.1 is taken."
    for bad in ("https://app.example/x", "a b", "a:b", "a/b", "new", "check", "-x" * 101):
        refused = operator.run("admin", "app", "create", "T", "--owner", "ada", f"--client-id={bad}")
        assert refused.returncode == 1, bad
        assert "A client ID must have" in refused.stderr
    assert hub.stop() == 0


def test_token_exchange_is_only_for_an_organizations_app(operator: Operator) -> None:
    make_people(operator)
    made = operator.json("admin", "app", "create", "Bridge", "--org", "acme", "--token-exchange")
    assert (made["organization"], made["owner"], made["token_exchange"]) == ("acme", "acme", True)
    client_id = made["client_id"]
    assert operator.json("admin", "app", "revoke-token-exchange", client_id)["token_exchange"] is False
    for _ in range(2):
        assert operator.json("admin", "app", "grant-token-exchange", client_id)["token_exchange"] is True
    assert operator.json("admin", "app", "list")[0]["token_exchange"] is True
    kinds = ["oauth.create_app", "oauth.revoke_token_exchange", "oauth.grant_token_exchange"]
    assert audit_of(operator) == [(kind, "system", None) for kind in kinds]
    users = operator.json("admin", "app", "create", "Mine", "--owner", "ada")["client_id"]
    said = operator.error_message("admin", "app", "grant-token-exchange", users)
    assert said == "Mine belongs to a user. Only an organization's app may exchange tokens."
    refused = operator.error_message("admin", "app", "create", "Mine", "--owner", "ada", "--token-exchange")
    assert refused == "Only an organization's app may exchange tokens. Use --org."
    assert len(operator.json("admin", "app", "list")) == 2


def test_extra_scopes_are_granted_and_revoked(operator: Operator) -> None:
    make_people(operator)
    (operator.folder / "hubgate.toml").write_text(
        '[[extra_scopes]]\nname = "read-metrics"\ntext = "See how the hub is used"\n'
    )
    client_id = operator.json("admin", "app", "create", "Bridge", "--org", "acme")["client_id"]
    for _ in range(2):
        granted = operator.json("admin", "app", "grant-scope", client_id, "read-metrics")
        assert granted["extra_scopes"] == ["read-metrics"]
    assert operator.json("admin", "app", "revoke-scope", client_id, "read-metrics")["extra_scopes"] == []
    assert [kind for kind, _, _ in audit_of(operator)] == [
        "oauth.create_app",
        "oauth.grant_scope",
        "oauth.revoke_scope",
    ]
    again = operator.error_message("admin", "app", "revoke-scope", client_id, "read-metrics")
    assert again == "The operator has not granted the scope read-metrics to Bridge."
    url = "https://notes.example/.well-known/oauth-cimd"
    for _ in range(2):
        assert operator.json("admin", "app", "grant-scope", url, "read-metrics")["extra_scopes"] == ["read-metrics"]
    listed = [(app["client_id"], app["document"]) for app in operator.json("admin", "app", "list")]
    assert listed == [(client_id, False), (url, True)]
    assert operator.json("admin", "app", "revoke-scope", url, "read-metrics")["extra_scopes"] == []
    never = operator.error_message("admin", "app", "revoke-scope", url, "read-metrics")
    assert never == f"The operator has not granted the scope read-metrics to {url}."
    assert "has a path" in operator.error_message(
        "admin", "app", "grant-scope", "https://notes.example", "read-metrics"
    )
    unknown = operator.error_message("admin", "app", "grant-scope", client_id, "fly")
    assert unknown == "This hub has no scope fly. Add it as [[extra_scopes]] to hubgate.toml first."
    built_in = operator.error_message("admin", "app", "grant-scope", client_id, "read-repos")
    assert built_in == "Every app may request read-repos. The app's owner can add it."


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "x", "--owner", "nobody"), "User nobody not found. List all with: hubgate admin user list"),
        (
            ("create", "x", "--org", "ghost"),
            "Organization ghost not found. List all with: hubgate admin org list",
        ),
        (
            ("create", "x", "--owner", "ada", "--scope", "fly"),
            "There is no scope fly. Ask the operator for extra scopes.",
        ),
        (
            ("create", "x", "--owner", "ada", "--scope", "openid", "--scope", "reed-repos"),
            "There is no scope reed-repos. Did you mean read-repos?",
        ),
        (
            ("create", "x", "--owner", "ada", "--scope", "openid,profile"),
            "List each scope separately, without commas or spaces.",
        ),
        (
            ("create", "x", "--owner", "ada", "--redirect-uri", "javascript:x"),
            "A redirect URI cannot use the scheme javascript.",
        ),
        (("create", " ", "--owner", "ada"), "An app's name must have 1 to 96 printable characters."),
        (("delete", "ghost"), "App ghost not found. List all apps with: hubgate admin app list"),
        (("refresh-secret", "ghost"), "App ghost not found."),
        (("grant-token-exchange", "ghost"), "App ghost not found."),
        (("revoke-scope", "ghost", "x"), "App ghost not found."),
    ],
    ids=range(11),
)
def test_errors_say_what_to_do(sqlite_operator: Operator, arguments: tuple[str, ...], says: str) -> None:
    assert sqlite_operator.error_message("admin", "app", *arguments).startswith(says)
    assert sqlite_operator.json("admin", "app", "list") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "x"),
        ("create", "x", "--owner", "ada", "--org", "acme"),
        ("create",),
        ("delete",),
        ("grant-scope", "x"),
    ],
)
def test_invalid_usage_is_rejected(sqlite_operator: Operator, arguments: tuple[str, ...]) -> None:
    done = sqlite_operator.run("admin", "app", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


def test_apps_are_printed_as_a_table(sqlite_operator: Operator) -> None:
    made = sqlite_operator.run("admin", "app", "create", "Notebook", "--org", "acme", "--token-exchange").stdout
    said = dict(line.split() for line in made.splitlines()[1:])
    assert set(said) == {"client_id", "client_secret"}
    listed = sqlite_operator.run("admin", "app", "list").stdout.splitlines()
    assert listed[0].split("  ")[0] == "CLIENT ID"
    assert said["client_id"] in listed[1]
    assert "has a secret, token exchange" in listed[1]
    assert said["client_secret"] not in "\n".join(listed)


def test_terminal_output_says_that_the_secret_is_shown_once(sqlite_operator: Operator) -> None:
    ours, theirs = pty.openpty()
    arguments = ["admin", "app", "create", "Notebook", "--owner", "ada"]
    running: Any = subprocess.Popen(
        [*HUBGATE, *arguments],
        cwd=sqlite_operator.folder,
        env=environment(**sqlite_operator.variables),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    assert running.wait(60) == 0
    os.close(theirs)
    shown = read_terminal(ours)
    assert b"client_secret  hfcs_" in shown
    assert b"Copy it now." in shown


def test_revoked_token_exchange_takes_effect_immediately(operator: Operator, hub: HubProcess) -> None:
    """Live exchanged tokens end, and giving it back does not revive them; a plan that is left works the same."""
    make_people(operator)
    made = operator.json("admin", "app", "create", "Bridge", "--org", "acme", "--token-exchange")
    client_id = made["client_id"]

    def taken() -> str:
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": "ada@example.org",
            "subject_token_type": "urn:service:token-type:user-email",
        }
        answer = httpx.post(f"{hub.url}/oauth/token", data=form, auth=(client_id, made["client_secret"]))
        return str(answer.json().get("access_token", answer.json().get("error")))

    def statuses() -> list[int]:
        whoami = f"{hub.url}/api/whoami-v2"
        return [httpx.get(whoami, headers={"authorization": f"Bearer {token}"}).status_code for token in tokens]

    tokens = [taken()]
    assert statuses() == [200]
    operator.json("admin", "app", "revoke-token-exchange", client_id)
    assert (statuses(), taken()) == ([401], "invalid_client")
    operator.json("admin", "app", "grant-token-exchange", client_id)
    tokens.append(taken())
    assert statuses() == [401, 200]
    operator.json("admin", "org", "set-plan", "acme", "team")
    assert (statuses(), taken()) == ([401, 401], "invalid_client")
    operator.json("admin", "org", "set-plan", "acme", "enterprise")
    tokens.append(taken())
    assert statuses() == [401, 401, 200]
    assert hub.stop() == 0


def test_registration_tokens_are_created_listed_and_revoked(operator: Operator) -> None:
    made = operator.json("admin", "registration-token", "create")
    assert made["token"].startswith("hf_register_")
    listed = operator.json("admin", "registration-token", "list")
    assert listed == [{name: value for name, value in made.items() if name != "token"}]
    assert (listed[0]["lastFour"], listed[0]["lastUsedAt"], listed[0]["registrations"]) == (made["token"][-4:], None, 0)
    assert operator.json("admin", "registration-token", "revoke", made["id"]) == {"revoked": made["id"]}
    assert operator.json("admin", "registration-token", "list") == []
    assert "not found" in operator.error_message("admin", "registration-token", "revoke", made["id"])
