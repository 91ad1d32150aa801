"""Whether an app's webhook reports on a repo is decided in the database.

The result equals the policy's decision for a token with the same grant, for every grant and every repo.
"""

from itertools import count, product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.access.test_properties import APPS
from tests.bed.apps import create_app
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import create_webhook

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account, Organization
from hubgate.server.accounts.roles import Role
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.resources import Hub
from hubgate.server.scopes import join_scopes
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.permissions.store import may_read

SCOPES = ("webhooks", "read-repos", "write-repos", "manage-repos", "contribute-repos", "write-discussions", "jobs")
scope_sets = st.frozensets(st.sampled_from(SCOPES))
ORGS = ("acme", "club", "foreign")
KNOWN = f"SELECT r.id FROM webhooks w JOIN repos r ON {may_read('r.private', 'r.owner_id', 'r.id')} WHERE w.id = :id"


def test_apps_webhook_reports_exactly_what_the_policy_lets_the_app_read(hub: RunningHub) -> None:
    me, other = create_user(hub, "me"), create_user(hub, "other")
    orgs = {name: create_organization(hub, name, other).id for name in ORGS}
    client_id = create_app(hub, other, scopes=("openid", *SCOPES)).id
    with api(hub, create_token(hub, me)) as client:
        mine = create_webhook(client, "https://example.org/hook", "user:me")["id"]
    with api(hub, create_token(hub, other)) as client:
        body = {"url": "https://example.org/hook", "watched": [{"type": "org", "name": "acme"}]}
        of_acme = client.post("/api/organizations/acme/settings/webhooks", json=body).json()["webhook"]["id"]
    owners = [("user", me.id), ("user", other.id), *(("org", org_id) for org_id in orgs.values())]
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
            creator_id=creator,
            creator_client=through,
            head_sha=None,
            card="{}",
            tags="[]",
            created_at=number,
            updated_at=number,
            generation=1,
            last_seq=1,
        )
        for number, ((kind, owner), private, creator, through) in zip(
            count(), product(owners, (0, 1), (me.id, other.id), (None, client_id, APPS[1])), strict=False
        )
    ]

    async def fill(tx: Tx) -> None:
        for repo in repos:
            await store.add(tx, repo)

    hub.call(lambda opened: opened.db.write_long(fill))

    @given(
        token=scope_sets,
        allowed=scope_sets,
        granted=st.dictionaries(st.sampled_from(ORGS), st.tuples(scope_sets, st.booleans())),
        members=st.dictionaries(st.sampled_from(ORGS), st.sampled_from(Role)),
        of_organization=st.booleans(),
    )
    @settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
    def holds(
        token: frozenset[str],
        allowed: frozenset[str],
        granted: dict[str, tuple[frozenset[str], bool]],
        members: dict[str, Role],
        of_organization: bool,
    ) -> None:
        token |= {"webhooks"}
        webhook_id = of_acme if of_organization else mine

        async def known(tx: Tx) -> set[str]:
            await tx.exec("DELETE FROM consents")
            await tx.exec("DELETE FROM memberships WHERE user_id = :me", {"me": me.id})
            for name, role in members.items():
                sql = "INSERT INTO memberships (org_id, user_id, role, joined_at) VALUES (:org, :me, :role, 5)"
                await tx.exec(sql, {"org": orgs[name], "me": me.id, "role": int(role)})
            await tx.exec(
                """
                INSERT INTO consents (id, user_id, client_id, app_id, scopes, face, app_name, created_at, updated_at)
                VALUES ('c', :me, :app, :app, :scopes, '', '', 1, 1)
                """,
                {"me": me.id, "app": client_id, "scopes": join_scopes(allowed)},
            )
            for name, (scopes, stale) in granted.items():
                sql = "INSERT INTO consent_organizations VALUES ('c', :org, :scopes, :joined_at)"
                values = {"org": orgs[name], "scopes": join_scopes(scopes), "joined_at": 4 if stale else 5}
                await tx.exec(sql, values)
            await tx.exec(
                """
                UPDATE webhooks SET client_id = :app, grant_kind = 'consent', granted_by = :me, granted_scopes = :scopes
                WHERE id = :id
                """,
                {"app": client_id, "me": me.id, "scopes": join_scopes(token), "id": webhook_id},
            )
            return {row["id"] for row in await tx.all(KNOWN, {"id": webhook_id})}

        async def work(opened: Hub) -> set[str]:
            return await opened.db.write_long(known)

        identity = Identity.consented(
            me.id,
            {orgs[name]: role for name, role in members.items()},
            client_id=client_id,
            scopes=token & allowed,
            organizations={
                orgs[name]: scopes for name, (scopes, stale) in granted.items() if name in members and not stale
            },
        )
        acme = Organization(orgs["acme"])
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
        assert hub.call(work) == expected

    holds()
