"""grant_type=urn:ietf:params:oauth:grant-type:token-exchange (RFC 8693), for the members of an app's organization."""

from typing import Any

from hubgate.server.errors import HubError
from hubgate.server.oauth.claims import places_for
from hubgate.server.oauth.client_auth import Find
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, invalid_request, invalid_target
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.exchange import check_subject, exchange, record_refusal, stored_form
from hubgate.server.oauth.exchange.model import Subject
from hubgate.server.oauth.grants.pipeline import Grant, GrantRequest
from hubgate.server.oauth.parameters import Parameters
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import requested_resources
from hubgate.server.oauth.tokens import issuance
from hubgate.server.oauth.tokens.groups import groups_for_id_token

USER_EMAIL = "urn:service:token-type:user-email"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 (the name of a kind of token)

_BASIC_ONLY = "Token exchange accepts the app's secret only with HTTP Basic."


async def answer(request: GrantRequest) -> dict[str, Any]:
    oauth, parameters, subject = request.oauth, request.parameters, request.subject
    if subject is None or not subject.app.confidential:
        raise InvalidClient(_BASIC_ONLY, basic=True, about="client_id")
    app = subject.app
    try:
        email = _subject_email(request)
    except HubError as error:
        await record_refusal(oauth, app, parameters.get("subject_token") or "", error, request.visitor)
        raise
    exchanged = await exchange(oauth, subject, email, parameters.get("scope"), request.visitor)
    body = await issuance.token_response(
        oauth,
        exchanged.user,
        app,
        exchanged.access_token,
        exchanged.scopes,
        exchanged.lifetime,
        groups=await groups_for_id_token(oauth, exchanged.access_token, places_for(app, "")),
    )
    return {**body, "issued_token_type": ACCESS_TOKEN}


def _find(oauth: OAuth, parameters: Parameters) -> Find[Subject]:
    """Read the member with the app. A malformed subject is looked up, too, and rejected once the app is known."""
    email, now = stored_form(parameters.get("subject_token") or ""), oauth.clock()
    return lambda client_id, key: store.find_with_secret(oauth.db, client_id, key, email, now)


def _subject_email(request: GrantRequest) -> str:
    """Validate the request and return the member's e-mail address."""
    parameters = request.parameters
    if request.presented is None or not request.presented.basic:
        # The secret allows acting for every member, so it must not end up in logged bodies.
        raise InvalidClient(_BASIC_ONLY, basic=True, about="client_id")
    kind = parameters.require("subject_token_type")
    if kind not in (USER_EMAIL, *request.oauth.subject_token_types):
        raise invalid_request(f"subject_token_type must be {USER_EMAIL}.", "subject_token_type")
    email = check_subject(parameters.require("subject_token"))
    if parameters.get("requested_token_type") not in (None, ACCESS_TOKEN):
        raise invalid_request(f"requested_token_type must be {ACCESS_TOKEN}.", "requested_token_type")
    if parameters.get("actor_token") is not None:
        raise invalid_request("actor_token is not supported: the app itself is the actor.", "actor_token")
    if parameters.get("actor_token_type") is not None:
        raise invalid_request("actor_token_type was sent without actor_token.", "actor_token_type")
    if requested_resources(parameters.all(RESOURCE), request.oauth.base_url):
        # The member sees no consent page that would name the other server.
        raise invalid_target("An exchanged token is only for this hub.")
    return email


GRANT = Grant(
    type="urn:ietf:params:oauth:grant-type:token-exchange",
    parameters={
        "subject_token": "the member's e-mail address",
        "subject_token_type": USER_EMAIL,
        "scope": "some of the app's scopes; without it, all that the organization allows",
        "resource": "this hub's address, or left out",
    },
    answer=answer,
    find=_find,
    is_enabled=lambda app: app.org_id is not None and app.confidential and app.exchange.privileged,
)
