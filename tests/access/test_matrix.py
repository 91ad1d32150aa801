"""Action x caller x scope x relation, exhaustively: the policy's decision against the tables of the specification."""

import pytest
from msgspec.structs import replace
from tests.access.expectations import COLUMNS, FULL, HUB, OPENED_BY
from tests.access.oracle import expected
from tests.access.scenes import ACME, APP, CLUB, ME, SCOPE_SETS, Scene, callers, scenes

from hubgate.server.access.actions import SCOPES_WITHOUT_ACTION, Action
from hubgate.server.access.decision import DecisionOutcome
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import HUB as THE_HUB
from hubgate.server.access.resource import Account, Collection, Hub, Organization, Post, Repo
from hubgate.server.access.rule import RequiredCredential
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.scopes import BUILT_IN_SCOPES, SCOPE_NAMES

LETTERS = {DecisionOutcome.ALLOW: "A", DecisionOutcome.FORBID: "F", DecisionOutcome.HIDE: "H"}
ORDER = tuple(scope.name for scope in BUILT_IN_SCOPES)
FEW = [frozenset(names) for names in ((), ("profile",), ("read-repos",), ("write-discussions",))]
# Discussing in a private repo needs one scope to act and one to read; contribute-repos reads what the app created.
DISCUSS_AND_READ = {
    False: ("manage-repos", "write-repos", "write-discussions", "read-repos"),
    True: ("manage-repos", "write-repos", "contribute-repos", "write-discussions", "read-repos"),
}
OWNED = [action for action in Action if action.rule.on != (Hub,)]


@pytest.mark.parametrize("action", OWNED, ids=lambda action: action.rule.name)
def test_every_decision_matches_the_tables(action: Action) -> None:
    name = action.rule.name
    wrong = []
    judged = 0
    for condition, cells in FULL[name].items():
        for column, letter in cells.items():
            if letter == "-":
                continue
            crowd = list(callers(column))
            for scene in scenes(action, condition, column):
                for caller in crowd:
                    judged += 1
                    got = LETTERS[decide(caller.identity, action, scene.resource).outcome]
                    if got != (want := expected(caller, name, scene)):
                        wrong.append(f"{want} expected, {got} given: {caller} on {scene}")
    assert judged > 300
    assert not wrong, f"{len(wrong)} of {judged}, first:\n" + "\n".join(wrong[:5])


@pytest.mark.parametrize("action", OWNED, ids=lambda action: action.rule.name)
def test_refusal_names_exactly_the_scopes_that_would_help(action: Action) -> None:
    for condition, cells in FULL[action.rule.name].items():
        for column in [column for column, letter in cells.items() if letter != "-"]:
            things = list(scenes(action, condition, column))
            for caller in callers(column):
                if caller.identity.is_scoped and caller.scopes in FEW:
                    _check_named(caller.identity, action, things)


def _check_named(token: Identity, action: Action, things: list[Scene]) -> None:
    wider = {scope: widened(token, scope) for scope in ORDER}
    for scene in things:
        decision = decide(token, action, scene.resource)
        if decision.outcome is not DecisionOutcome.FORBID:
            assert decision.scopes == (), "naming a scope would tell that something is there"
            continue
        alone = tuple(scope for scope in ORDER if decide(wider[scope], action, scene.resource).allowed)
        if alone != decision.scopes:
            assert (scene.private, alone) == (True, ()), decision
            assert decision.scopes == DISCUSS_AND_READ[scene.created_by_app and token.client_id == APP]
            both = widened(token, "write-discussions", "read-repos")
            assert decide(both, action, scene.resource).allowed


def widened(token: Identity, *scopes: str) -> Identity:
    """With these scopes added, also in every granted organization and in every chosen repo."""
    granted, repos = ({place: held | set(scopes) for place, held in by.items()} for by in (token.granted, token.repos))
    return replace(token, scopes=token.scopes | set(scopes), granted=granted, repos=repos)


@pytest.mark.parametrize("name", HUB)
def test_decisions_on_the_hub_itself_match_the_table(name: str) -> None:
    action = next(action for action in Action if action.rule.name == name)
    members = {ACME: Role.ADMIN}
    doors = {
        "nobody": [Identity.anonymous()],
        "session": [Identity.session(ME, members)],
        "operator's session": [Identity.session(ME, members, operator=True)],
        "tokens": [
            *(Identity.personal(ME, members, role=role) for role in (TokenRole.READ, TokenRole.WRITE)),
            *(
                Identity.fine_grained(ME, members, token_id="t", scopes=scopes, owners={ME: scopes}, repos={})
                for scopes in SCOPE_SETS
            ),
            *(
                Identity.consented(ME, members, client_id=APP, scopes=scopes, organizations={ACME: scopes})
                for scopes in SCOPE_SETS
            ),
            *(
                Identity.exchanged(ME, members, client_id=APP, scopes=scopes, organization=ACME)
                for scopes in SCOPE_SETS
            ),
        ],
    }
    for door, identities in doors.items():
        want = DecisionOutcome.ALLOW if door in HUB[name] else DecisionOutcome.FORBID
        assert {decide(identity, action, THE_HUB).outcome for identity in identities} == {want}, door


def test_every_action_has_rows() -> None:
    assert {action.rule.name for action in Action} == {*FULL, *HUB}


def test_every_action_is_tested_in_all_its_conditions_and_relations() -> None:
    everyone = set(COLUMNS)
    for action in OWNED:
        on, rows = action.rule.on, FULL[action.rule.name]
        conditions, columns = {"always"}, everyone - {"made"}
        if on == (Repo,):
            conditions, columns = {"open", "private"}, everyone
        if on == (Post,):
            conditions = {"open,mine", "open,theirs", "private,mine", "private,theirs"}
            columns = everyone - {"nobody"}
        if on == (Collection,):
            conditions = {"open", "private"}
        if on == (Account,):
            columns = {"own", "stranger", "nobody"}
        if on == (Organization,):
            columns = everyone - {"made", "own"}
        if action.rule.gate_scopes:
            conditions = {"public", "gated", "admitted", "private"}
        assert set(rows) == conditions, action
        for cells in rows.values():
            assert columns <= {column for column, letter in cells.items() if letter != "-"}, action


def test_every_scope_allows_an_action_or_only_affects_issued_claims() -> None:
    asked = {
        scope
        for action in Action
        for scope in action.rule.scopes + action.rule.creator_scopes + action.rule.gate_scopes
    }
    assert asked | SCOPES_WITHOUT_ACTION == SCOPE_NAMES
    assert not asked & SCOPES_WITHOUT_ACTION
    assert set(OPENED_BY) == SCOPE_NAMES == {scope.name for scope in BUILT_IN_SCOPES}


def test_exactly_the_scoped_actions_name_a_scope() -> None:
    for action in Action:
        assert bool(action.rule.scopes) == (action.rule.credential is RequiredCredential.SCOPED), action


def test_names_are_unique() -> None:
    assert len({action.rule.name for action in Action}) == len(Action)


def test_action_on_the_wrong_kind_of_resource_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match=r"repo\.see does not apply to Account"):
        decide(Identity.anonymous(), Action.REPO_SEE, Account(ME))


def test_lapsed_exchanged_token_is_treated_as_anonymous() -> None:
    """O44: the member left, the token still exists."""
    gone = Identity.exchanged(ME, {CLUB: Role.ADMIN}, client_id=APP, scopes=SCOPE_NAMES, organization=ACME)
    for action in OWNED:
        for condition, cells in FULL[action.rule.name].items():
            for column in cells:
                if cells[column] == "-":
                    continue
                for scene in scenes(action, condition, column):
                    allowed = decide(gone, action, scene.resource).allowed
                    assert allowed == decide(Identity.anonymous(), action, scene.resource).allowed, scene
