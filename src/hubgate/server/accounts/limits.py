"""Rate limits on sign-ins, sign-ups, mails, invitations, new organizations and renames."""

import ipaddress

from hubgate.server.throttle.rate_limiter import Limit

_QUARTER, _HOUR, _DAY = 15 * 60, 60 * 60, 24 * 60 * 60


def _mails(kind: str) -> Limit:
    """A limit on mails of one kind to one recipient. Kinds are counted separately: mails caused by others must not use
    up the user's own limit (O73)."""
    return Limit(f"mail {kind}", 5, _HOUR, "Too many mails to this address. Try again in {minutes}.")


FAILED_SIGN_INS_OF_ACCOUNT = Limit("sign-in account", 10, _QUARTER)
FAILED_SIGN_INS_FROM_ADDRESS = Limit("sign-in address", 100, _QUARTER)
SIGN_UPS_FROM_ADDRESS = Limit("sign-up address", 20, _HOUR)
INVITATIONS_BY_SENDER = Limit(
    "invitation sender", 50, _DAY, "You can send 50 invitations a day. Try again in {minutes}."
)
ORGANIZATIONS_BY_FOUNDER = Limit(
    "organization founder", 20, _DAY, "You can create 20 organizations a day. Try again in {minutes}."
)
RENAMES_OF_ACCOUNT = Limit("rename account", 5, _DAY, "A name can be changed five times a day. Try again in {minutes}.")

# Mails that users request for themselves.
RESET_MAILS = _mails("reset")
CONFIRMATION_MAILS = _mails("confirmation")
# Mails that others may cause.
JOIN_MAILS = _mails("join")
ADDRESS_CHANGE_MAILS = _mails("address change")
INVITATION_MAILS = _mails("invitation")
RESET_MAILS_BY_OPERATOR = _mails("reset by operator")
OPERATOR_REQUEST_MAILS = _mails("operator request")


def network_of(ip: str) -> str:
    """The network of a client: an IPv4 address, or an IPv6 /64, which belongs to one customer."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return ip
    if isinstance(address, ipaddress.IPv4Address):
        return ip
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
