"""How the edge answers a refusal, and that a missing resource looks like a private one."""

import re

import pytest

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide, refuse_missing, require
from hubgate.server.access.resource import Account, Collection, Organization, Repo
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.errors import Forbidden, HubError, NotFound, Unauthorized
from hubgate.server.scopes import SCOPE_NAMES

ME, ACME = Account("me"), Organization("acme")
PRIVATE = Repo(ME, private=True)
ANYONE = Identity.anonymous()
SIGNED_IN = Identity.session("me", {})


def app(*scopes: str, role: Role = Role.ADMIN) -> Identity:
    held = frozenset(scopes)
    return Identity.consented("me", {"acme": role}, client_id="app", scopes=held, organizations={"acme": held})


def answer(identity: Identity, action: Action, resource: Repo | Collection) -> tuple[type, str, str | None]:
    with pytest.raises(HubError) as caught:
        require(identity, action, resource)
    return type(caught.value), caught.value.message, caught.value.code


def test_allowed_request_passes() -> None:
    require(SIGNED_IN, Action.REPO_MANAGE, PRIVATE)


def test_invisible_repo_is_401_to_the_anonymous_and_404_to_others() -> None:
    kind, _, code = answer(ANYONE, Action.REPO_SEE, PRIVATE)
    assert (kind, code) == (Unauthorized, "RepoNotFound")
    kind, _, code = answer(Identity.session("other", {}), Action.REPO_SEE, PRIVATE)
    assert (kind, code) == (NotFound, "RepoNotFound")


def test_invisible_collection_carries_no_repo_code() -> None:
    hidden = Collection(ME, private=True)
    assert answer(ANYONE, Action.COLLECTION_READ, hidden)[::2] == (Unauthorized, None)
    assert answer(Identity.session("other", {}), Action.COLLECTION_READ, hidden)[::2] == (NotFound, None)


def test_gated_repo_is_401_for_anonymous_and_403_for_others_with_the_text_clients_match() -> None:
    gated = Repo(ACME, gated=True, label="model acme/tiny")
    sentence = re.compile("Access to model .* is restricted and you are not in the authorized list")
    for identity, wanted in ((ANYONE, Unauthorized), (SIGNED_IN, Forbidden)):
        kind, message, code = answer(identity, Action.REPO_READ_CONTENT, gated)
        assert (kind, code) == (wanted, "GatedRepo")
        assert sentence.search(message)


def test_anonymous_write_asks_to_sign_in() -> None:
    assert answer(ANYONE, Action.REPO_WRITE, Repo(ACME))[::2] == (Unauthorized, None)


def test_missing_scope_names_all_that_would_help_and_requests_the_weakest() -> None:
    with pytest.raises(Forbidden, match=r"manage-repos or write-repos to change") as caught:
        require(app("read-repos"), Action.REPO_WRITE, PRIVATE)
    assert caught.value.scopes == ("write-repos",)


def test_pull_request_on_a_private_repo_needs_a_reading_scope_too() -> None:
    with pytest.raises(Forbidden) as caught:
        require(app("write-discussions"), Action.DISCUSSION_OPEN, PRIVATE)
    assert caught.value.scopes == ("read-repos",)
    with pytest.raises(Forbidden, match="write-discussions, and manage-repos or") as caught:
        require(app(), Action.DISCUSSION_OPEN, PRIVATE)
    assert caught.value.scopes == ("write-discussions", "read-repos")
    require(app("write-discussions", "read-repos"), Action.DISCUSSION_OPEN, PRIVATE)


def test_o57_reader_of_the_organization_cannot_delete_with_manage_repos() -> None:
    with pytest.raises(Forbidden, match="write role") as caught:
        require(app("manage-repos", role=Role.READ), Action.REPO_MANAGE, Repo(ACME, private=True))
    assert caught.value.scopes == ()


def test_action_without_a_scope_is_answered_as_closed_to_apps() -> None:
    with pytest.raises(Forbidden, match="No app can see the audit log") as caught:
        require(app(*SCOPE_NAMES), Action.ORG_READ_AUDIT_LOG, ACME)
    assert caught.value.scopes == ()


def test_token_without_the_organization_is_refused_for_that_reason() -> None:
    token = Identity.consented("me", {"acme": Role.ADMIN}, client_id="app", scopes=SCOPE_NAMES, organizations={})
    with pytest.raises(Forbidden, match="not granted access to the organization"):
        require(token, Action.REPO_WRITE, Repo(ACME))


@pytest.mark.parametrize("action", [a for a in Action if a.rule.on == (Repo,)], ids=lambda a: a.rule.name)
@pytest.mark.parametrize("owner", [ME, ACME, Account("other"), Organization("foreign")], ids=str)
def test_missing_repo_answers_like_a_private_one(action: Action, owner: Account | Organization) -> None:
    """Unless the caller may see everything private there, when the truth reveals nothing."""
    private = Repo(owner, private=True, creator_id="founder", creator_client="another-app")
    members = {"acme": Role.READ}
    callers = [ANYONE, SIGNED_IN, Identity.personal("me", members, role=TokenRole.READ)]
    for name in (*SCOPE_NAMES, ""):
        callers.append(app(name, role=Role.READ))
        callers.append(
            Identity.exchanged("me", members, client_id="app", scopes={name}, organization="acme"),
        )
    for caller in callers:
        with pytest.raises(HubError) as missing:
            refuse_missing(caller, action, Repo.missing(owner))
        if decide(caller, Action.REPO_SEE, private).allowed:
            assert isinstance(missing.value, NotFound)
            assert missing.value.code == "RepoNotFound"
        else:
            got = (type(missing.value), missing.value.message, missing.value.code)
            assert got == answer(caller, action, private)


def test_missing_collection_is_not_found() -> None:
    with pytest.raises(NotFound):
        refuse_missing(SIGNED_IN, Action.COLLECTION_WRITE, Collection.missing(ME))
    with pytest.raises(Unauthorized):
        refuse_missing(ANYONE, Action.COLLECTION_READ, Collection.missing())
    with pytest.raises(Forbidden):
        refuse_missing(app("profile"), Action.COLLECTION_WRITE, Collection.missing(ME))


def test_roles_are_ordered_and_spelled_as_on_the_wire() -> None:
    assert [role.label for role in sorted(Role)] == ["read", "contributor", "write", "admin"]
    assert [Role.parse(role.label) for role in Role] == list(Role)
    with pytest.raises(ValueError, match="is not a role"):
        Role.parse("Owner")
