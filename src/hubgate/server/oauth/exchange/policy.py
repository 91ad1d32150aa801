"""Decides about an exchange; the first failed check determines the error. Pure, except for operator settings."""

import ipaddress

from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_scope
from hubgate.server.oauth.exchange.model import REQUIRED_PLAN, Facts, Granted, Member, Refused
from hubgate.server.oauth.requested_scopes import requested_scopes

# One text for every problem with a member: the app must not learn the reason (attack O42).
NO_MEMBER = "There is no such member in the organization."


def decide(oauth: OAuth, facts: Facts) -> Granted | Refused:
    if why := _app_problem(facts):
        return Refused(InvalidClient(why, basic=True, about="grant_type"), why)
    try:
        scopes = _scopes(oauth, facts)
    except OAuthError as refusal:
        return Refused(refusal, refusal.message)
    member = facts.subject.member
    if member is None:
        return Refused(invalid_grant(NO_MEMBER), "nobody in the organization has this address")
    if why := _member_problem(facts, member):
        return Refused(invalid_grant(NO_MEMBER), why)
    return Granted(member, scopes)


def _app_problem(facts: Facts) -> str:
    app, limits = facts.subject.app, facts.subject.app.exchange
    if app.org_id is None:
        return "Only an organization's app may exchange tokens."
    if not limits.privileged:
        return (
            "This app does not have the token exchange privilege. Request it from the operator in the app's settings."
        )
    if facts.subject.plan != REQUIRED_PLAN:
        return "Token exchange needs the Enterprise plan."
    if not app.confidential:
        return "Token exchange needs an app with a secret."
    if limits.paused:
        return "The organization has paused token exchange for this app."
    if limits.networks is not None and facts.ip is not None and not _is_within(facts.ip, limits.networks):
        return "The organization does not allow token exchange from this address."
    return ""


def _is_within(ip: str, networks: tuple[str, ...]) -> bool:
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    # A dual-stack socket reports IPv4 addresses mapped to IPv6; networks may be written either way.
    spellings = [address]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        spellings.append(address.ipv4_mapped)
    elif isinstance(address, ipaddress.IPv4Address):
        spellings.append(ipaddress.IPv6Address(f"::ffff:{address}"))
    return any(spelling in ipaddress.ip_network(network) for network in networks for spelling in spellings)


def _scopes(oauth: OAuth, facts: Facts) -> tuple[str, ...]:
    """The requested scopes, if the organization allows all of them; by default the app's scopes that it allows."""
    requested, allowed = requested_scopes(oauth, facts.subject.app, facts.scope), facts.subject.app.exchange.scopes
    if allowed is None:
        return requested
    if facts.scope is None:
        return tuple(name for name in requested if name in allowed)
    for name in requested:
        if name not in allowed:
            raise invalid_scope(f"The organization does not allow {name} in token exchange.", "scope")
    return requested


def _member_problem(facts: Facts, member: Member) -> str:
    user, roles = member.user, facts.subject.app.exchange.roles
    if user.disabled_at is not None:
        return f"the account {user.name} is disabled"
    if user.email_verified_at is None:
        return f"{user.name} has not confirmed the address"
    if roles is not None and member.role.label not in roles:
        return f"{user.name} has the role {member.role.label}, which is not allowed"
    return ""
