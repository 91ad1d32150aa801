"""The client against a running hub: users, organizations, tokens, repos."""

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.bed.exchange import create_exchange_app
from tests.bed.hostile import http_response, json_response, run_hostile_server
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

import hubgate
from hubgate import AsyncHub, Hub, client
from hubgate.client import errors
from hubgate.depth import delivery_depth

Make = Callable[..., Hub]


def test_whoami_returns_the_signed_in_user(sqlite_hub: RunningHub) -> None:
    ada = create_user(sqlite_hub, "ada")
    create_organization(sqlite_hub, "acme", ada)
    with Hub(sqlite_hub.url, create_token(sqlite_hub, ada)) as hub:
        me = hub.whoami()
    assert (me.name, me.email, me.email_verified) == ("ada", "ada@example.org", True)
    assert [(org.name, org.role_in_org) for org in me.orgs] == [("acme", "admin")]
    assert repr(hub) == f"Hub({sqlite_hub.url!r})"


async def test_whoami_in_an_event_loop(sqlite_hub: RunningHub) -> None:
    token = create_token(sqlite_hub, create_user(sqlite_hub, "ada"))
    async with AsyncHub(sqlite_hub.url, token) as hub:
        assert (await hub.whoami()).name == "ada"
        with pytest.raises(errors.NotFound):
            await hub.get_organization("nobody")


def test_missing_and_invalid_tokens_raise_not_signed_in(sqlite_hub: RunningHub) -> None:
    with Hub(sqlite_hub.url) as hub, pytest.raises(errors.NotSignedIn) as caught:
        hub.whoami()
    assert caught.value.status == 401
    assert caught.value.request_id
    with Hub(sqlite_hub.url, "hf_unknown") as hub, pytest.raises(errors.NotSignedIn):
        hub.whoami()


def test_settings_from_the_environment(sqlite_hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBGATE_ENDPOINT", sqlite_hub.url + "/")
    monkeypatch.setenv("HUBGATE_TOKEN", create_token(sqlite_hub, create_user(sqlite_hub, "ada")))
    with Hub() as hub:
        assert hub.whoami().name == "ada"
    with Hub(token=False) as hub, pytest.raises(errors.NotSignedIn):
        hub.whoami()
    monkeypatch.delenv("HUBGATE_ENDPOINT")
    assert Hub().endpoint == "http://127.0.0.1:8000"


def test_personal_tokens(sqlite_hub: RunningHub) -> None:
    ada = create_user(sqlite_hub, "ada")
    create_token(sqlite_hub, ada, "read", "laptop")
    with Hub(sqlite_hub.url, create_token(sqlite_hub, ada, "write", "server")) as hub:
        laptop = next(token for token in hub.list_tokens() if token.name == "laptop")
        assert hub.rename_token(laptop.id, "old laptop").name == "old laptop"
        hub.revoke_token(laptop.id)
        assert [token.name for token in hub.list_tokens()] == ["server"]
        with pytest.raises(errors.NotFound):
            hub.revoke_token(laptop.id)


def test_organizations_and_audit_log(sqlite_hub: RunningHub) -> None:
    ada = create_user(sqlite_hub, "ada")
    create_user(sqlite_hub, "bob")
    create_organization(sqlite_hub, "acme", ada, bob="read")
    with Hub(sqlite_hub.url, create_token(sqlite_hub, ada)) as hub:
        assert hub.get_organization("acme").num_users == 2
        assert {member.user: member.role for member in hub.list_members("acme")} == {"ada": "admin", "bob": "read"}
        assert len(hub.list_members("acme", limit=1)) == 1
        hub.set_member_role("acme", "bob", "write")
        hub.remove_member("acme", "bob")
        log = hub.export_audit_log("acme")
        assert {"org.change_role", "org.remove_user"} <= {entry.type for entry in log}
        assert hub.export_audit_log("acme", query="type:org.remove_user")[0].author.user == "ada"


def test_exchange_token_for_a_member(sqlite_hub: RunningHub) -> None:
    ada = create_user(sqlite_hub, "ada")
    app = create_exchange_app(sqlite_hub, create_organization(sqlite_hub, "acme", ada), scopes=("openid", "profile"))
    with Hub(sqlite_hub.url) as hub:
        token = hub.exchange_token(*app.basic, "ada@example.org", scopes=["profile"])
        assert (token.scope, token.expires_in) == ("profile", 28800)
        assert token.issued_token_type == "urn:ietf:params:oauth:token-type:access_token"
        assert token.access_token not in repr(token)
        with pytest.raises(errors.SignInFailed) as caught:
            hub.exchange_token(*app.basic, "eve@example.org")
        assert caught.value.error == "invalid_grant"
        with pytest.raises(errors.SignInFailed, match="invalid_client"):
            hub.exchange_token(app.id, "wrong", "ada@example.org")
    with Hub(sqlite_hub.url, token.access_token) as hub:
        assert hub.whoami().name == "ada"


def test_repos(as_user: Make) -> None:
    ada, bob = as_user("ada"), as_user("bob")
    assert ada.create_repo("tiny", private=True).url == f"{ada.endpoint}/ada/tiny"
    assert ada.create_repo("ada/rows", type="dataset").name == "ada/rows"
    with pytest.raises(errors.Conflict):
        ada.create_repo("tiny")
    assert ada.create_repo("tiny", exist_ok=True).url == f"{ada.endpoint}/ada/tiny"
    assert ada.repo_info("ada/tiny").private
    assert [repo.id for repo in ada.list_repos(owner="ada")] == ["ada/tiny"]
    assert [(repo.id, repo.type) for repo in bob.list_repos(owner="ada", type="dataset")] == [("ada/rows", "dataset")]
    with pytest.raises(errors.RepoNotFound):
        bob.repo_info("ada/tiny")
    with pytest.raises(errors.RevisionNotFound):
        ada.repo_info("ada/tiny", revision="none")
    ada.move_repo("ada/tiny", "ada/small")
    assert ada.repo_info("ada/tiny").id == "ada/small"
    with pytest.raises(errors.Forbidden):
        bob.delete_repo("ada/rows", type="dataset")
    ada.delete_repo("small")
    assert ada.list_repos(owner="ada") == []


def test_long_lists_are_fetched_page_by_page(as_user: Make) -> None:
    ada = as_user("ada")
    for number in range(4):
        ada.create_repo(f"r{number}")
    every = {"ada/r0", "ada/r1", "ada/r2", "ada/r3"}
    assert {repo.id for repo in ada.list_repos(owner="ada")} == every
    assert len(ada.list_repos(owner="ada", limit=3)) == 3


@pytest.mark.parametrize("repo", ["tiny", "a/b/c", "../x", "ada/..", "ada/ti ny", "ada/x?y", ""])
def test_invalid_name_is_not_sent(repo: str, tmp_path: Path) -> None:
    with Hub("http://127.0.0.1:1", "hf_x") as hub, pytest.raises(ValueError, match="namespace/name"):
        hub.repo_info(repo)


# Each with one name too few, as os.environ.get gives it where a variable is not set.
NAMELESS: dict[str, Callable[[Any, Any], Any]] = {
    "get_webhook": lambda hub, none: hub.get_webhook(none),
    "update_webhook": lambda hub, none: hub.update_webhook(none, url="https://ci.example/", watched=["user:ada"]),
    "enable_webhook": lambda hub, none: hub.enable_webhook(none),
    "disable_webhook": lambda hub, none: hub.disable_webhook(none),
    "delete_webhook": lambda hub, none: hub.delete_webhook(none),
    "test_webhook": lambda hub, none: hub.test_webhook(none),
    "webhook_activity": lambda hub, none: hub.webhook_activity(none),
    "get_delivery": lambda hub, none: hub.get_delivery("6530c2a1b2c3d4e5f6071829", none),
    "replay_webhook": lambda hub, none: hub.replay_webhook("6530c2a1b2c3d4e5f6071829", none),
    "replay_webhook_since": lambda hub, none: hub.replay_webhook_since(none, datetime.now(UTC)),
    "start_replay": lambda hub, none: hub.start_replay(none, datetime.now(UTC)),
    "get_replay": lambda hub, none: hub.get_replay("6530c2a1b2c3d4e5f6071829", none),
    "follow_replay": lambda hub, none: hub.follow_replay("6530c2a1b2c3d4e5f6071829", none),
    "cancel_replay": lambda hub, none: hub.cancel_replay("6530c2a1b2c3d4e5f6071829", none),
    "create_repo": lambda hub, none: hub.create_repo(none),
    "delete_repo": lambda hub, none: hub.delete_repo(none),
    "move_repo from": lambda hub, none: hub.move_repo(none, "ada/x"),
    "move_repo to": lambda hub, none: hub.move_repo("ada/x", none),
    "repo_info": lambda hub, none: hub.repo_info(none),
    "list_files": lambda hub, none: hub.list_files(none),
    "list_files revision": lambda hub, none: hub.list_files("ada/x", revision=none),
    "upload": lambda hub, none: hub.upload(none, {"x": b"x"}),
    "upload path": lambda hub, none: hub.upload("ada/x", {none: b"x"}),
    "delete_files": lambda hub, none: hub.delete_files("ada/x", [none]),
    "delete_files list": lambda hub, none: hub.delete_files("ada/x", none),
    "download": lambda hub, none: hub.download(none, "x"),
    "download path": lambda hub, none: hub.download("ada/x", none),
    "download_all": lambda hub, none: hub.download_all(none, Path("x")),
    "get_organization": lambda hub, none: hub.get_organization(none),
    "list_members": lambda hub, none: hub.list_members(none),
    "set_member_role": lambda hub, none: hub.set_member_role("acme", none, "read"),
    "remove_member": lambda hub, none: hub.remove_member("acme", none),
    "export_audit_log": lambda hub, none: hub.export_audit_log(none),
    "rename_token": lambda hub, none: hub.rename_token(none, "laptop"),
    "revoke_token": lambda hub, none: hub.revoke_token(none),
    "exchange_token": lambda hub, none: hub.exchange_token(none, "s", "ada@example.org"),
    "exchange_token secret": lambda hub, none: hub.exchange_token("c", none, "ada@example.org"),
}


@pytest.mark.parametrize("name", NAMELESS)
def test_missing_name_is_not_sent(name: str) -> None:
    with run_hostile_server(http_response(404)) as server, Hub(server.url, "hf_x", retries=0) as hub:
        for none in (None, ""):
            with pytest.raises(ValueError, match=r"is not a name|not a path inside|namespace/name|as a list|client_id"):
                NAMELESS[name](hub, none)
        assert server.seen == []


def test_single_path_is_rejected_instead_of_split_into_letters() -> None:
    with Hub("http://127.0.0.1:1", "hf_x") as hub:
        # A namespace that is not set does not mean one's own.
        for wrong in ("/vision", "ada/", "/"):
            for ask in (hub.delete_repo, hub.create_repo, lambda name: hub.move_repo(name, "ada/x")):
                with pytest.raises(ValueError, match="namespace/name"):
                    ask(wrong)
    with Hub("http://127.0.0.1:1", "hf_x") as hub, pytest.raises(ValueError, match="as a list"):
        hub.delete_files("ada/x", "model.bin")


def test_both_clients_have_the_same_methods() -> None:
    def signatures(face: type) -> dict[str, str]:
        found = inspect.getmembers(face, lambda member: inspect.isfunction(member))
        return {name: str(inspect.signature(method)) for name, method in found if not name.startswith("_")}

    assert signatures(Hub) == signatures(AsyncHub)
    doing = [name for name in signatures(AsyncHub) if not inspect.iscoroutinefunction(getattr(AsyncHub, name))]
    assert doing == []


def test_public_surface() -> None:
    assert hubgate.__all__ == ["AsyncHub", "Hub"]
    raised = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert raised | {"AsyncHub", "Hub"} == set(client.__all__)
    assert all(name in (errors.__doc__ or "") for name in raised)
    with pytest.raises(AttributeError):
        hubgate.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_depth_of_a_delivery_is_sent_only_to_the_hub(tmp_path: Path) -> None:
    from tests.client.test_hostile_answers import ME

    context = delivery_depth.set(3)
    try:
        with (
            run_hostile_server(http_response(404)) as other,
            run_hostile_server(json_response(200, ME), http_response(302, location=other.url)) as server,
        ):
            with Hub(server.url, "hf_x", retries=0) as hub:
                hub.whoami()
                assert server.seen[0].headers["x-hubgate-depth"] == "3"
                with pytest.raises(errors.HubgateError):
                    hub.download("ada/x", "y", tmp_path / "y")
            assert all("x-hubgate-depth" not in seen.headers for seen in other.seen)
    finally:
        delivery_depth.reset(context)
