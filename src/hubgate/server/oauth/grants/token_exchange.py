"""grant_type=urn:ietf:params:oauth:grant-type:token-exchange (RFC 8693), for the members of an app's organization."""

from typing import Any

from hubgate.server.errors import HubError
from hubgate.server.oauth.errors import InvalidClient, invalid_request, invalid_target
from hubgate.server.oauth.exchange.exchange import check_subject, exchange, record_refusal
from hubgate.server.oauth.grants.request import GrantRequest
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import requested_resources
from hubgate.server.oauth.tokens import issuance

TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
USER_EMAIL = "urn:service:token-type:user-email"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 (the name of a kind of token)
PARAMETERS = {
    "subject_token": "the member's e-mail address",
    "subject_token_type": USER_EMAIL,
    "scope": "some of the app's; without it, all of them",
    "resource": "this hub's address, or left out",
}

_BASIC_ONLY = "Token exchange takes the app's secret by Basic alone."


async def grant(asking: GrantRequest) -> dict[str, Any]:
    oauth, parameters, app = asking.oauth, asking.parameters, asking.app
    if app is None or not app.confidential:
        raise InvalidClient(_BASIC_ONLY, basic=True, about="client_id")
    try:
        email = _subject_email(asking)
    except HubError as error:
        await record_refusal(oauth, app, parameters.get("subject_token") or "", error, asking.visitor)
        raise
    exchanged = await exchange(oauth, app, email, parameters.get("scope"), asking.visitor)
    answer = await issuance.answer(
        oauth, exchanged.user, app.client_id, exchanged.access_token, exchanged.scopes, exchanged.lifetime
    )
    return {**answer, "issued_token_type": ACCESS_TOKEN}


def _subject_email(asking: GrantRequest) -> str:
    """Validate the request and return the member's e-mail address."""
    parameters = asking.parameters
    if asking.presented is None or not asking.presented.basic:
        # The secret allows acting for every member, so it must not end up in logged bodies.
        raise InvalidClient(_BASIC_ONLY, basic=True, about="client_id")
    kind = parameters.need("subject_token_type")
    if kind not in (USER_EMAIL, *asking.oauth.subject_token_types):
        raise invalid_request(f"subject_token_type is {USER_EMAIL}.", "subject_token_type")
    email = check_subject(parameters.need("subject_token"))
    if parameters.get("requested_token_type") not in (None, ACCESS_TOKEN):
        raise invalid_request(f"requested_token_type is {ACCESS_TOKEN}.", "requested_token_type")
    if parameters.get("actor_token") is not None:
        raise invalid_request("There is no actor_token here: the app itself acts.", "actor_token")
    if requested_resources(parameters.all(RESOURCE), asking.oauth.base_url):
        # The member sees no consent page that would name the other server.
        raise invalid_target("An exchanged token is for this hub alone.")
    return email
