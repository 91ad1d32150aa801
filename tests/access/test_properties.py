"""Properties that hold for every caller and every resource, independent of the tables."""

from collections.abc import Iterable
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hubgate.server.access.actions import Action
from hubgate.server.access.decision import DecisionOutcome
from hubgate.server.access.identity import CredentialKind, Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import HUB, Account, Collection, Hub, Organization, Post, Repo, Resource
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.tokens.limits import EVERYWHERE_SCOPES, REPO_SCOPES
from hubgate.server.scopes import SCOPE_NAMES

USERS = ("me", "someone")
ORGS = ("acme", "club", "foreign")
APPS = ("app", "other-app")
# Also a fine-grained token.
CLIENTS = (*APPS, "token:limited")
REPOS = tuple(f"{number:024x}" for number in range(0, 160, 20))


def subsets(names: Iterable[str]) -> st.SearchStrategy[frozenset[str]]:
    """None, one, all, or any of the names. A subset is a number: a draw for each name would take much longer."""
    ordered = sorted(names)
    edges = [frozenset[str](), *(frozenset({name}) for name in ordered), frozenset(ordered)]
    any_of_them = st.integers(0, 2 ** len(ordered) - 1).map(
        lambda number: frozenset(name for place, name in enumerate(ordered) if number >> place & 1)
    )
    return st.one_of(st.sampled_from(edges), any_of_them)


scope_sets = subsets(SCOPE_NAMES)
grants = st.fixed_dictionaries({}, optional=dict.fromkeys(ORGS, scope_sets))
# Where all values can be listed, one draw is enough.
memberships = st.sampled_from(
    [
        {org: role for org, role in zip(ORGS, roles, strict=True) if role is not None}
        for roles in product((None, *Role), repeat=len(ORGS))
    ]
)
owners = (*map(Account, USERS), *map(Organization, ORGS))
booleans = (False, True)
creators, clients = (None, *USERS), (None, *CLIENTS)
repos = st.sampled_from(
    [
        Repo(owner, private, gated, granted, creator_id=creator, creator_client=client, id=repo_id)
        for owner, private, gated, granted, creator, client, repo_id in product(
            owners, booleans, booleans, booleans, creators, clients, REPOS
        )
    ]
)
of_kind: dict[type, st.SearchStrategy[Resource]] = {
    Repo: repos,
    Post: st.builds(Post, repos, st.sampled_from(creators)),
    Collection: st.sampled_from([Collection(owner, private) for owner, private in product(owners, booleans)]),
    Account: st.sampled_from(USERS).map(Account),
    Organization: st.sampled_from(ORGS).map(Organization),
    Hub: st.just(HUB),
}


@st.composite
def deeds(draw: st.DrawFn) -> tuple[Action, Resource]:
    action = draw(st.sampled_from(Action))
    return action, draw(of_kind[draw(st.sampled_from(action.rule.on))])


@st.composite
def fine_grained(draw: st.DrawFn, members: dict[str, Role]) -> Identity:
    return Identity.fine_grained(
        "me",
        members,
        token_id="limited",
        scopes=draw(subsets(EVERYWHERE_SCOPES)),
        owners=draw(st.fixed_dictionaries({}, optional=dict.fromkeys(("me", *ORGS), scope_sets))),
        repos=draw(st.dictionaries(st.sampled_from(REPOS), subsets(REPO_SCOPES))),
    )


@st.composite
def tokens(draw: st.DrawFn) -> Identity:
    members, scopes, app = draw(memberships), draw(scope_sets), draw(st.sampled_from(APPS))
    match draw(st.sampled_from(("personal", "fine-grained", "consented", "exchanged"))):
        case "personal":
            return Identity.personal("me", members, role=draw(st.sampled_from((TokenRole.READ, TokenRole.WRITE))))
        case "fine-grained":
            return draw(fine_grained(members))
        case "consented":
            return Identity.consented("me", members, client_id=app, scopes=scopes, organizations=draw(grants))
        case _:
            fence = draw(st.sampled_from(ORGS))
            return Identity.exchanged("me", members, client_id=app, scopes=scopes, organization=fence)


sessions = st.builds(Identity.session, st.just("me"), memberships, operator=st.booleans())
callers = st.one_of(tokens(), sessions, st.just(Identity.anonymous()))
law = settings(deadline=None)


def allows(identity: Identity, deed: tuple[Action, Resource]) -> bool:
    return decide(identity, *deed).allowed


def is_private(resource: Resource) -> bool:
    thing = resource.repo if isinstance(resource, Post) else resource
    return isinstance(thing, Repo | Collection) and thing.private


def owner_of(resource: Resource) -> Account | Organization | None:
    thing = resource.repo if isinstance(resource, Post) else resource
    return thing.owner if isinstance(thing, Repo | Collection) else None


@law
@given(tokens(), deeds(), scope_sets)
def test_more_scopes_never_remove_a_permission(
    token: Identity, deed: tuple[Action, Resource], more: frozenset[str]
) -> None:
    assert not allows(token, deed) or allows(replace(token, scopes=token.scopes | more), deed)


@law
@given(callers, deeds(), st.sampled_from(ORGS), st.sampled_from(Role))
def test_higher_role_never_removes_a_permission(
    caller: Identity, deed: tuple[Action, Resource], org: str, role: Role
) -> None:
    raised = max(role, caller.memberships.get(org, role))
    promoted = replace(caller, memberships={**caller.memberships, org: raised})
    assert not allows(caller, deed) or allows(promoted, deed)


@law
@given(tokens(), deeds(), grants)
def test_granting_organizations_never_removes_a_permission(
    token: Identity, deed: tuple[Action, Resource], more: dict[str, frozenset[str]]
) -> None:
    before = token.granted
    wider = {org: before.get(org, frozenset()) | more.get(org, frozenset()) for org in {*before, *more}}
    assert not allows(token, deed) or allows(replace(token, granted=wider), deed)


@law
@given(tokens(), deeds(), st.sampled_from(ORGS), scope_sets)
def test_scope_that_was_not_granted_for_an_organization_has_no_effect_there(
    token: Identity, deed: tuple[Action, Resource], org: str, granted: frozenset[str]
) -> None:
    """For private resources, where only the grant gives access."""
    narrow = replace(token, granted={org: granted})
    scoped = replace(token, granted={org: granted}, scopes=token.scopes & granted)
    if token.kind is CredentialKind.CONSENTED and is_private(deed[1]) and owner_of(deed[1]) == Organization(org):
        assert allows(narrow, deed) == allows(scoped, deed)


@law
@given(memberships, scope_sets, st.sampled_from(ORGS), deeds())
def test_exchanged_token_allows_no_more_than_a_consented_one(
    members: dict[str, Role], scopes: frozenset[str], fence: str, deed: tuple[Action, Resource]
) -> None:
    exchanged = Identity.exchanged("me", members, client_id="app", scopes=scopes, organization=fence)
    consented = Identity.consented(
        "me", members, client_id="app", scopes=scopes, organizations=dict.fromkeys(ORGS, scopes)
    )
    assert not allows(exchanged, deed) or allows(consented, deed)


@law
@given(memberships, scope_sets, st.sampled_from(ORGS), deeds())
def test_exchanged_token_outside_its_organization_changes_nothing_and_sees_nothing_private(
    members: dict[str, Role], scopes: frozenset[str], fence: str, deed: tuple[Action, Resource]
) -> None:
    """O43."""
    action, resource = deed
    thing = resource.repo if isinstance(resource, Post) else resource
    owner = thing.owner if isinstance(thing, Repo | Collection) else thing
    token = Identity.exchanged("me", members, client_id="app", scopes=scopes, organization=fence)
    outcome = decide(token, action, resource).outcome
    if owner == Organization(fence):
        return
    assert action.rule.read or outcome is not DecisionOutcome.ALLOW
    assert not is_private(resource) or outcome is DecisionOutcome.HIDE


@law
@given(memberships, deeds(), st.data())
def test_fine_grained_token_outside_its_places_changes_nothing_and_sees_nothing_private(
    members: dict[str, Role], deed: tuple[Action, Resource], data: st.DataObject
) -> None:
    """Apart from discussions on public repos, if the token has that scope everywhere."""
    action, resource = deed
    token = data.draw(fine_grained(members))
    thing = resource.repo if isinstance(resource, Post) else resource
    owner = thing.owner if isinstance(thing, Repo | Collection) else thing
    in_place = isinstance(owner, Account | Organization) and owner.id in token.granted
    if in_place or (isinstance(thing, Repo) and thing.id in token.repos):
        return
    outcome = decide(token, action, resource).outcome
    discusses = "write-discussions" in token.scopes and action.rule.name.startswith("discussion.")
    assert action.rule.read or discusses or outcome is not DecisionOutcome.ALLOW
    assert not is_private(resource) or outcome is DecisionOutcome.HIDE


@law
@given(tokens(), deeds())
def test_token_allows_no_more_than_its_users_session(token: Identity, deed: tuple[Action, Resource]) -> None:
    session = Identity.session("me", token.memberships)
    assert not allows(token, deed) or allows(session, deed)


@law
@given(tokens(), deeds())
def test_app_may_do_no_more_than_a_write_token(token: Identity, deed: tuple[Action, Resource]) -> None:
    personal = Identity.personal("me", token.memberships, role=TokenRole.WRITE)
    assert not allows(token, deed) or allows(personal, deed)


@law
@given(memberships, deeds())
def test_read_token_allows_exactly_the_reads_of_a_write_token(
    members: dict[str, Role], deed: tuple[Action, Resource]
) -> None:
    reading = Identity.personal("me", members, role=TokenRole.READ)
    writing = Identity.personal("me", members, role=TokenRole.WRITE)
    public = allows(Identity.anonymous(), deed)
    assert allows(reading, deed) == (allows(writing, deed) and (public or deed[0].rule.read))


@law
@given(sessions, deeds())
def test_operator_flag_opens_only_the_operators_pages(session: Identity, deed: tuple[Action, Resource]) -> None:
    if deed[0] is not Action.OPERATOR_USE:
        assert decide(replace(session, operator=True), *deed) == decide(replace(session, operator=False), *deed)


@law
@given(tokens())
def test_no_token_opens_the_operators_pages(token: Identity) -> None:
    assert not allows(replace(token, operator=True), (Action.OPERATOR_USE, HUB))


@law
@given(callers, deeds())
def test_everyone_may_do_what_anonymous_visitors_may(caller: Identity, deed: tuple[Action, Resource]) -> None:
    assert not allows(Identity.anonymous(), deed) or allows(caller, deed)


@law
@given(callers, deeds())
def test_only_private_resources_are_hidden_and_only_anonymous_callers_are_sent_to_sign_in(
    caller: Identity, deed: tuple[Action, Resource]
) -> None:
    decision = decide(caller, *deed)
    assert decision.outcome is not DecisionOutcome.HIDE or is_private(deed[1])
    assert decision.sign_in == (caller.kind is CredentialKind.ANONYMOUS and not decision.allowed)


@law
@given(callers, deeds())
def test_refusal_gives_the_reason_in_one_line(caller: Identity, deed: tuple[Action, Resource]) -> None:
    """It is sent as X-Error-Message: ASCII, one line."""
    decision = decide(caller, *deed)
    assert bool(decision.reason) != decision.allowed
    assert decision.reason.isascii()
    assert decision.reason.isprintable()
    assert all(name in decision.reason for name in decision.scopes)
