"""The data of a user's account, as a JSON download; credentials and webhooks are listed without their
secrets. Collections and comments may be long, so they are sent in parts.
"""

from collections.abc import AsyncGenerator
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Membership, Owner, Person, User
from hubgate.server.accounts.names import name_key
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.organizations.model import Invitation
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens import wire as tokens
from hubgate.server.clock import iso, iso_or_none
from hubgate.server.edge.routes import Route, own
from hubgate.server.http.request import HubRequest
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import reading
from hubgate.server.hub.discussions import own_comments
from hubgate.server.hub.discussions.store import OwnComment
from hubgate.server.hub.gating import store as gating_store
from hubgate.server.hub.gating.model import AccessRequest
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.consent import connections
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.store import ActiveToken
from hubgate.server.oauth.resource_servers import management as resource_management
from hubgate.server.paging import MAX_LIMIT, PageRequest, decode_cursor
from hubgate.server.storage.database import Tx
from hubgate.server.web import exchanged_tokens
from hubgate.server.web.api import application_shapes, connected_apps, resource_servers, sessions
from hubgate.server.web.api.collections import wire as collections
from hubgate.server.web.api.repos import wire as repos
from hubgate.server.web.api.webhook_shapes import webhook_json
from hubgate.server.web.streamed_json import json_array, json_object
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import lifecycle

PATH = "/settings/export"
_ACTION = Action.ACCOUNT_READ_SETTINGS


def routes(accounts: Accounts, oauth: OAuth, webhooks: Webhooks) -> list[Route]:
    async def collect(caller: Caller) -> dict[str, Any]:
        person = caller.signed_in_person
        user_id = person.user.id
        connected = await connections.of_user(oauth, user_id)
        own_apps = await management.of_owner(oauth, Owner(user_id=user_id))
        own_servers = await resource_management.of_owner(oauth, Owner(user_id=user_id))
        owned = await accounts.db.read_long(lambda tx: repo_store.of_owner(tx, user_id))
        own_webhooks = await lifecycle.list_webhooks(webhooks, Owner(user_id=user_id))
        return {
            **await _account(accounts, person),
            "connectedApps": [connected_apps.describe(app) for app in connected],
            "exchangedTokens": [exchanged_tokens.describe(token) for token in await issued_for(user_id)],
            "apps": [application_shapes.describe(app, None) for app in own_apps],
            "resources": [resource_servers.describe(server, None) for server in own_servers],
            "repos": [{"type": repo.type, **repos.describe(repo)} for repo in owned],
            "accessRequests": await access_requests(caller),
            "webhooks": [webhook_json(webhook) for webhook in own_webhooks],
        }

    def long_lists(caller: Caller) -> dict[str, AsyncGenerator[bytes, None]]:
        user_id = caller.user.id
        listed = reading.export_of(accounts.db, caller.identity, user_id)
        return {
            "collections": json_array(listed, lambda found: collections.summary(accounts.base_url, found)),
            "comments": json_array(own_comments.export_of(accounts.db, user_id), _comment),
        }

    async def access_requests(caller: Caller) -> list[dict[str, Any]]:
        """The user's requests for access to gated repos. A repo that has become private is named by its id only."""

        async def read(tx: Tx) -> list[dict[str, Any]]:
            found = await gating_store.all_of_user(tx, caller.user.id)
            return [_access_request(each, await repo_store.by_id(tx, each.repo_id), caller.identity) for each in found]

        return await accounts.db.read_long(read)

    async def issued_for(user_id: str) -> list[ActiveToken]:
        """Exchanged tokens that organizations obtained for this user."""
        found: list[ActiveToken] = []
        page_request = PageRequest(MAX_LIMIT)
        while True:
            page = await issued_tokens.of_member(oauth, user_id, page_request)
            found += page.items
            if page.next_cursor is None:
                return found
            page_request = PageRequest(MAX_LIMIT, decode_cursor(page.next_cursor, issued_tokens.CURSOR))

    async def download(_: HubRequest, caller: Caller) -> StreamedResponse:
        person = caller.signed_in_person
        # Names are ASCII without quotes, so no escaping is needed.
        headers = {
            "content-type": "application/json",
            "content-disposition": f'attachment; filename="{person.user.name}.json"',
        }
        return StreamedResponse(json_object(await collect(caller), long_lists(caller)), headers)

    return [Route("GET", PATH, own(_ACTION, download), Surface.PAGE, "The data of your account, as JSON")]


async def _account(accounts: Accounts, person: Person) -> dict[str, Any]:
    user = person.user
    names = await accounts.db.read_long(lambda tx: store.names_of(tx, user.id))
    return {
        "user": _user(user)
        | {
            "formerNames": [name for name in names if name != name_key(user.name)],
            "discussionMail": await store.wants_discussion_mail(accounts.db, user.id),
        },
        "organizations": [_membership(membership) for membership in person.memberships],
        "invitations": [_invitation(*each) for each in await invitations.of_user(accounts, user)],
        "tokens": [tokens.token_info(token) for token in await personal.of_user(accounts, user.id)],
        "sessions": [sessions.describe(session) for session in await browser_sessions.of_user(accounts, user.id)],
    }


def _access_request(found: AccessRequest, repo: Repo | None, identity: Identity) -> dict[str, Any]:
    may_see = repo is not None and decide(identity, Action.REPO_SEE, repo.as_resource()).allowed
    return {
        "repoId": found.repo_id,
        "repo": repo.full_name if repo and may_see else None,
        "status": found.status,
        "fields": found.answer_map,
        "createdAt": iso(found.created_at),
    }


def _user(user: User) -> dict[str, Any]:
    return {
        "id": user.id,
        "name": user.name,
        "fullname": user.fullname,
        "email": user.email,
        "emailVerifiedAt": iso_or_none(user.email_verified_at),
        "website": user.website,
        "operator": bool(user.operator),
        "canPay": bool(user.can_pay),
        "createdAt": iso(user.created_at),
    }


def _comment(comment: OwnComment) -> dict[str, Any]:
    return {
        "repo": comment.repo,
        "type": comment.repo_type,
        "discussion": comment.num,
        "title": comment.title,
        "createdAt": iso(comment.created_at),
        "text": comment.text,
    }


def _membership(membership: Membership) -> dict[str, Any]:
    organization = membership.organization
    return {"id": organization.id, "name": organization.name, "role": membership.role.label}


def _invitation(invitation: Invitation, organization: str) -> dict[str, Any]:
    return {
        "id": invitation.id,
        "organization": organization,
        "role": invitation.role.label,
        "createdAt": iso(invitation.created_at),
        "expiresAt": iso(invitation.expires_at),
    }
