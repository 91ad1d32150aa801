"""An exchanged token against three oracles: one knows only the organization's boundary, one the role, one the scopes.

They are written from SEED.md 2.6 and 5.3 and the roles of CONTRACT.md, by verb and object, without the rules of the
policy. Exactly what all three allow is allowed. Later routes are covered by the actions they declare.
"""

from dataclasses import dataclass

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from tests.access.test_properties import of_kind, scope_sets

from hubgate.server.access.actions import Action
from hubgate.server.access.decision import DecisionOutcome
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account, Collection, Hub, Organization, Post, Repo, Resource
from hubgate.server.access.visibility import visible_repos
from hubgate.server.accounts.roles import Role
from hubgate.server.scopes import SCOPE_NAMES

BOUND, OTHERS = "acme", ("club", "foreign")
NAMED = {action.rule.name: action for action in Action}
RANKS = ("read", "contributor", "write", "admin")
SCOPES = sorted(SCOPE_NAMES)
MANY = settings(deadline=None)

REPO_SCOPES_THAT_READ = {"read-repos", "write-repos", "manage-repos"}
REPO_SCOPES_THAT_WRITE = {"write-repos", "manage-repos"}
COLLECTION_SCOPES_THAT_READ = {"read-collections", "write-collections"}


@dataclass(frozen=True)
class Try:
    """What a member's token tries. `role` is the role in the token's organization."""

    role: str
    elsewhere: dict[str, Role]
    scopes: frozenset[str]
    action: str
    thing: Resource

    @property
    def token(self) -> Identity:
        members = {**self.elsewhere, BOUND: Role.parse(self.role)}
        return Identity.exchanged("me", members, client_id="app", scopes=self.scopes, organization=BOUND)

    @property
    def repo(self) -> Repo | None:
        thing = self.thing.repo if isinstance(self.thing, Post) else self.thing
        return thing if isinstance(thing, Repo) else None

    @property
    def private(self) -> bool:
        thing = self.repo or self.thing
        return isinstance(thing, Repo | Collection) and thing.private

    @property
    def inside(self) -> bool:
        thing = self.repo or self.thing
        owner = thing.owner if isinstance(thing, Repo | Collection) else thing
        return owner == Organization(BOUND)

    @property
    def may_anyone(self) -> bool:
        """What an anonymous visitor may read stays readable."""
        if self.action in ("hub.public", "repo.list", "collection.list"):
            return True
        if self.action == "repo.read_content":
            return self.repo is not None and not self.repo.private and not self.repo.gated
        return self.action in ("repo.see", "collection.read") and not self.private


@st.composite
def tries(draw: st.DrawFn) -> Try:
    action = draw(st.sampled_from(sorted(NAMED)))
    return Try(
        draw(st.sampled_from(RANKS)),
        draw(st.dictionaries(st.sampled_from(OTHERS), st.sampled_from(Role))),
        draw(st.one_of(st.frozensets(st.sampled_from(SCOPES), max_size=3), scope_sets)),
        action,
        draw(of_kind[draw(st.sampled_from(NAMED[action].rule.on))]),
    )


def fence_allows(one: Try) -> bool:
    """SEED.md 5.3: resources of the organization; outside it, public gated repos the user was individually granted
    access to. The user's identity is included, because the organization itself named the user.
    """
    if one.inside:
        return True
    if one.action in ("account.identify", "account.read_profile", "account.read_email"):
        return one.thing == Account("me")
    repo = one.repo
    return one.action == "repo.read_content" and repo is not None and not repo.private and repo.granted


ADMINS = "org.read_webhooks org.write_webhooks"
WRITERS = """
    repo.write repo.configure repo.manage repo.read_requests
    collection.create collection.write discussion.moderate jobs.run
"""
# The least role in the token's organization.
NEEDED = {
    **dict.fromkeys(ADMINS.split(), "admin"),
    **dict.fromkeys(WRITERS.split(), "write"),
    "repo.create": "contributor",
}


def role_allows(one: Try) -> bool:
    """CONTRACT.md, Roles; authors may change what they wrote."""
    if not one.inside:
        return True
    wrote = isinstance(one.thing, Post) and one.thing.author_id == "me"
    if one.action in ("discussion.push", "discussion.edit"):
        return wrote
    if one.action == "discussion.close" and wrote:
        return True
    role = one.role
    if role == "contributor" and one.repo is not None and one.repo.creator_id == "me":
        role = "write"
    needed = "write" if one.action == "discussion.close" else NEEDED.get(one.action, "read")
    return RANKS.index(role) >= RANKS.index(needed)


CLOSED = """
    account.read_settings account.write_settings account.credentials account.read_webhooks account.write_webhooks
    org.read_members org.write_members org.read_settings org.write_settings org.read_apps org.write_apps
    org.read_audit_log repo.leave_redirect repo.ask_access operator.use
""".split()  # noqa: SIM905
ENOUGH: dict[str, set[str]] = {
    "account.read_profile": {"profile"},
    "account.read_email": {"email"},
    "account.read_billing": {"read-billing"},
    "org.read_billing": {"read-billing"},
    "org.read_webhooks": {"webhooks"},
    "org.write_webhooks": {"webhooks"},
    "inference.use": {"inference-api"},
    "jobs.read": {"jobs"},
    "jobs.run": {"jobs"},
    "collection.read": COLLECTION_SCOPES_THAT_READ,
    "collection.create": {"write-collections"},
    "collection.write": {"write-collections"},
    "repo.see": REPO_SCOPES_THAT_READ,
    "repo.read_content": REPO_SCOPES_THAT_READ,
    "repo.write": REPO_SCOPES_THAT_WRITE,
    "repo.configure": REPO_SCOPES_THAT_WRITE,
    "repo.manage": {"manage-repos"},
    "repo.read_requests": {"manage-repos"},
    "repo.create": {"manage-repos", "contribute-repos"},
}
OF_THE_APPS_OWN_REPOS = ("repo.see", "repo.read_content", "repo.write", "repo.configure")


def scope_allows(one: Try) -> bool:
    """SEED.md 2.6. Discussing in a private repo also needs a scope that reads it."""
    held, repo, action = one.scopes, one.repo, one.action
    if action in CLOSED:
        return False
    if action in ("account.identify", "repo.list_owned"):
        return True
    made_by_app = repo is not None and repo.creator_client == "app" and "contribute-repos" in held
    reads = bool(held & REPO_SCOPES_THAT_READ) or made_by_app
    if action.startswith("discussion."):
        return "write-discussions" in held and (reads or not one.private)
    if action in OF_THE_APPS_OWN_REPOS and made_by_app and one.inside:
        return True
    let_in = repo is not None and repo.granted and repo.gated and not repo.private
    if action == "repo.read_content" and let_in and "gated-repos" in held:
        return True
    # Outside the organization the scopes for its repos allow nothing; the user's profile is available everywhere.
    return (one.inside or action.startswith("account.")) and bool(held & ENOUGH[action])


def allowed(one: Try) -> bool:
    return one.may_anyone or (fence_allows(one) and role_allows(one) and scope_allows(one))


@MANY
@given(tries())
def test_allowed_is_what_boundary_role_and_scope_all_allow(one: Try) -> None:
    outcome = decide(one.token, NAMED[one.action], one.thing).outcome
    assert (outcome is DecisionOutcome.ALLOW) == allowed(one), outcome
    event(f"{outcome.value} {'inside' if one.inside else 'outside'}")


@MANY
@given(tries())
def test_private_resources_outside_the_organization_are_hidden(one: Try) -> None:
    """O43: and nothing outside it can be changed, public or not."""
    assume(not one.inside and not isinstance(one.thing, Hub))
    outcome = decide(one.token, NAMED[one.action], one.thing).outcome
    if one.private:
        assert outcome is DecisionOutcome.HIDE
    elif not one.may_anyone and not fence_allows(one):
        assert outcome is DecisionOutcome.FORBID


@MANY
@given(tries(), st.dictionaries(st.sampled_from(OTHERS), st.sampled_from(Role)))
def test_roles_in_other_organizations_do_not_matter(one: Try, others: dict[str, Role]) -> None:
    """They neither allow nor forbid anything."""
    elsewhere = Try(one.role, others, one.scopes, one.action, one.thing)
    assert decide(one.token, NAMED[one.action], one.thing) == decide(elsewhere.token, NAMED[one.action], one.thing)


@MANY
@given(tries())
def test_lists_show_only_what_may_be_read(one: Try) -> None:
    """A list is limited to the organization, and empty if no scope reads."""
    sight = visible_repos(one.token)
    assert {*sight.owners, *sight.owners_of_created} <= {BOUND}
    if sight.owners:
        assert one.scopes & REPO_SCOPES_THAT_READ


@MANY
@given(tries())
def test_former_members_token_allows_only_what_anyone_may_read(one: Try) -> None:
    """The token itself is already invalid; this is a second line of defence."""
    left = Identity.exchanged("me", one.elsewhere, client_id="app", scopes=one.scopes, organization=BOUND)
    assert decide(left, NAMED[one.action], one.thing).allowed == one.may_anyone


@pytest.mark.parametrize("oracle", [fence_allows, role_allows, scope_allows])
def test_each_oracle_forbids_something_that_the_others_allow(oracle: object) -> None:
    """Otherwise the property would hold without it."""
    others = [one for one in (fence_allows, role_allows, scope_allows) if one is not oracle]
    cases = {
        fence_allows: Try("admin", {}, frozenset(SCOPE_NAMES), "account.read_billing", Account("me")),
        role_allows: Try("read", {}, frozenset({"manage-repos"}), "repo.manage", Repo(Organization(BOUND))),
        scope_allows: Try("admin", {}, frozenset({"read-repos"}), "repo.manage", Repo(Organization(BOUND))),
    }
    case = cases[oracle]  # type: ignore[index]
    assert all(other(case) for other in others)
    assert not allowed(case)
    assert not decide(case.token, NAMED[case.action], case.thing).allowed
