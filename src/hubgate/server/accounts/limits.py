"""How often is too often."""

import ipaddress

from hubgate.server.throttle.limiter import Limit

_QUARTER, _HOUR, _DAY = 15 * 60, 60 * 60, 24 * 60 * 60

FAILED_SIGN_INS_OF_ACCOUNT = Limit("sign-in account", 10, _QUARTER)
FAILED_SIGN_INS_FROM_ADDRESS = Limit("sign-in address", 100, _QUARTER)
SIGN_UPS_FROM_ADDRESS = Limit("sign-up address", 20, _HOUR)
MAILS_TO_RECIPIENT = Limit("mail recipient", 5, _HOUR, "Too many mails to this address. Wait {minutes}.")
RENAMES_OF_ACCOUNT = Limit("rename account", 5, _DAY, "A name can be changed five times a day. Try again in {minutes}.")


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
