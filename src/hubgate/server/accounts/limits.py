"""Rate limits on sign-ins, sign-ups, mails, invitations, new organizations and renames."""

import ipaddress

from hubgate.server.throttle.rate_limiter import Limit

_QUARTER_HOUR, _HOUR, _DAY = 15 * 60, 60 * 60, 24 * 60 * 60


def _mail_limit(kind: str) -> Limit:
    """A limit on e-mails of one kind to one recipient. Kinds are counted separately: e-mails caused by others must not
    use up the user's own limit (attack O73)."""
    return Limit(f"mail {kind}", 5, _HOUR, "Too many e-mails to this address. Try again in {duration}.")


FAILED_SIGN_INS_OF_ACCOUNT = Limit("sign-in account", 10, _QUARTER_HOUR)
FAILED_SIGN_INS_FROM_ADDRESS = Limit("sign-in address", 100, _QUARTER_HOUR)
SIGN_UPS_FROM_ADDRESS = Limit("sign-up address", 20, _HOUR)
INVITATIONS_BY_SENDER = Limit(
    "invitation sender", 50, _DAY, "You can send 50 invitations a day. Try again in {duration}."
)
ORGANIZATIONS_BY_FOUNDER = Limit(
    "organization founder", 20, _DAY, "You can create 20 organizations a day. Try again in {duration}."
)
RENAMES_OF_ACCOUNT = Limit(
    "rename account", 5, _DAY, "A name can be changed five times a day. Try again in {duration}."
)

# Mails that users request for themselves.
RESET_MAILS = _mail_limit("reset")
CONFIRMATION_MAILS = _mail_limit("confirmation")
# Mails that others may cause.
JOIN_MAILS = _mail_limit("join")
ADDRESS_CHANGE_MAILS = _mail_limit("address change")
INVITATION_MAILS = _mail_limit("invitation")
RESET_MAILS_BY_OPERATOR = _mail_limit("reset by operator")
TEST_MAILS = _mail_limit("test")
OPERATOR_REQUEST_MAILS = _mail_limit("operator request")


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
