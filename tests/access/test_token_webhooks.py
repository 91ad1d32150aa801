"""Whether the webhook of a fine-grained token reports on a repo is decided in the database.

The result equals the policy's decision for the token itself, for all limits and every repo.
"""

from itertools import count, product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bed.people import api, create_limited_token, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import create_webhook

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account, Organization
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.limits import own_account
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.resources import Hub
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.permissions.store import may_read

SCOPES = ("webhooks", "read-repos", "manage-repos", "contribute-repos", "jobs")
scope_sets = st.frozensets(st.sampled_from(SCOPES))
ORGS = ("acme", "club")
KNOWN = f"SELECT r.id FROM webhooks w JOIN repos r ON {may_read('r.private', 'r.owner_id', 'r.id')} WHERE w.id = :id"
ADD_LIMIT = (
    "INSERT INTO token_limits (token_id, target_id, kind, scopes, joined_at) VALUES (:token, :id, :kind, :s, :j)"
)


def test_tokens_webhook_reports_exactly_what_the_policy_lets_the_token_read(hub: RunningHub) -> None:
    me, other = create_user(hub, "me"), create_user(hub, "other")
    orgs = {name: create_organization(hub, name, other).id for name in ORGS}
    _, token = create_limited_token(hub, me, places=[own_account(me, SCOPES)])
    with api(hub, create_token(hub, me)) as client:
        mine = create_webhook(client, "https://example.org/hook", "user:me")["id"]
    with api(hub, create_token(hub, other)) as client:
        body = {"url": "https://example.org/hook", "watched": [{"type": "org", "name": "acme"}]}
        of_acme = client.post("/api/organizations/acme/settings/webhooks", json=body).json()["webhook"]["id"]
    owners = [("user", me.id), ("user", other.id), *(("org", org_id) for org_id in orgs.values())]
    made = zip(count(), product(owners, (0, 1), (None, f"token:{token.id}"), (0, 1)), strict=False)
    repos = [
        Repo(
            id=f"{number:024x}",
            type="model",
            owner_kind=kind,
            owner_id=owner,
            owner_name=owner,
            name=f"r{number}",
            private=private,
            gated="",
            discussions_disabled=0,
            sdk="",
            creator_id=me.id,
            creator_client=through,
            head_sha=None,
            card="{}",
            tags="[]",
            created_at=number,
            updated_at=number,
            generation=1,
            last_seq=1,
        )
        for number, ((kind, owner), private, through, _) in made
    ]

    async def fill(tx: Tx) -> None:
        for repo in repos:
            await store.add(tx, repo)

    hub.call(lambda opened: opened.db.write_long(fill))

    @given(
        own=st.none() | scope_sets,
        granted=st.dictionaries(st.sampled_from(ORGS), st.tuples(scope_sets, st.booleans())),
        chosen=st.dictionaries(st.sampled_from(repos), st.sampled_from(("read-repos", "write-discussions"))),
        members=st.dictionaries(st.sampled_from(ORGS), st.sampled_from(Role)),
        of_organization=st.booleans(),
    )
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(
        own: frozenset[str] | None,
        granted: dict[str, tuple[frozenset[str], bool]],
        chosen: dict[Repo, str],
        members: dict[str, Role],
        of_organization: bool,
    ) -> None:
        webhook_id = of_acme if of_organization else mine
        limits: list[tuple[str, str, frozenset[str], int | None]] = []
        if own is not None:
            limits.append((me.id, "user", own, None))
        # Those of an earlier membership no longer apply.
        limits += [(orgs[name], "org", scopes, 4 if stale else 5) for name, (scopes, stale) in granted.items()]
        limits += [(repo.id, "repo", frozenset({scope}), 5) for repo, scope in chosen.items()]

        async def known(tx: Tx) -> set[str]:
            await tx.exec("DELETE FROM token_limits")
            await tx.exec("DELETE FROM memberships WHERE user_id = :me", {"me": me.id})
            for name, role in members.items():
                sql = "INSERT INTO memberships (org_id, user_id, role, joined_at) VALUES (:org, :me, :role, 5)"
                await tx.exec(sql, {"org": orgs[name], "me": me.id, "role": int(role)})
            for target, kind, scopes, joined_at in limits:
                await tx.exec(
                    ADD_LIMIT,
                    {"token": token.id, "id": target, "kind": kind, "s": join_scopes(scopes), "j": joined_at},
                )
            await tx.exec(
                """
                UPDATE webhooks SET client_id = :client_id, grant_kind = 'token', granted_by = :me, granted_scopes = ''
                WHERE id = :id
                """,
                {"client_id": f"token:{token.id}", "me": me.id, "id": webhook_id},
            )
            return {row["id"] for row in await tx.all(KNOWN, {"id": webhook_id})}

        async def work(opened: Hub) -> tuple[set[str], Caller]:
            found = await opened.db.write_long(known)
            person = await account_store.person(opened.db, me.id)
            assert person
            return found, Caller.with_token(person, await personal.get(opened.accounts, me.id, token.id))

        found, caller = hub.call(work)
        identity, acme = caller.identity, Organization(orgs["acme"])
        may_have = (
            decide(identity, Action.ORG_WRITE_WEBHOOKS, acme)
            if of_organization
            else decide(identity, Action.ACCOUNT_WRITE_WEBHOOKS, Account(me.id))
        )
        expected = {
            repo.id
            for repo in repos
            if may_have.allowed
            and decide(identity, Action.REPO_SEE, repo.as_resource()).allowed
            and (not of_organization or not repo.private or repo.owner_id == acme.id)
        }
        assert found == expected

    holds()
