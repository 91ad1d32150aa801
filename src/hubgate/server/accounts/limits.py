"""How often is too often."""

import ipaddress

from hubgate.server.throttle.limiter import Limit

_QUARTER, _HOUR, _DAY = 15 * 60, 60 * 60, 24 * 60 * 60


def _mails(kind: str) -> Limit:
    """To one recipient. Each kind counts for itself: mails that others cause must not use up a user's own (O73)."""
    return Limit(f"mail {kind}", 5, _HOUR, "Too many mails to this address. Wait {minutes}.")


FAILED_SIGN_INS_OF_ACCOUNT = Limit("sign-in account", 10, _QUARTER)
FAILED_SIGN_INS_FROM_ADDRESS = Limit("sign-in address", 100, _QUARTER)
SIGN_UPS_FROM_ADDRESS = Limit("sign-up address", 20, _HOUR)
INVITATIONS_BY_SENDER = Limit(
    "invitation sender", 50, _DAY, "You can send 50 invitations a day. Try again in {minutes}."
)
RENAMES_OF_ACCOUNT = Limit("rename account", 5, _DAY, "A name can be changed five times a day. Try again in {minutes}.")

# What users ask for themselves.
RESET_MAILS = _mails("reset")
CONFIRMATION_MAILS = _mails("confirmation")
# What others may cause.
JOIN_MAILS = _mails("join")
ADDRESS_CHANGE_MAILS = _mails("address change")
INVITATION_MAILS = _mails("invitation")
RESET_MAILS_BY_OPERATOR = _mails("reset by operator")
OPERATOR_REQUEST_MAILS = _mails("operator request")


def network_of(ip: str) -> str:
    """Whose address it is: with IPv6 one customer has a whole /64."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return ip
    if isinstance(address, ipaddress.IPv4Address):
        return ip
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
