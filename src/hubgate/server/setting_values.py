"""Parsers for the text of a setting. A ValueError says what was expected."""

import difflib
import ipaddress
import re
from collections.abc import Callable, Iterable
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Parse = Callable[[str], Any]

SHORTEST_SECRET = 32


def text(value: str) -> str:
    if any(ord(character) < 32 for character in value):
        raise ValueError("control characters are not allowed")
    return value.strip()


def nonempty(value: str) -> str:
    if not text(value):
        raise ValueError("must not be empty")
    return text(value)


def folder(value: str) -> Path:
    return Path(nonempty(value)).expanduser().absolute()


def flag(value: str) -> bool:
    match value.strip().lower():
        case "true" | "on" | "yes" | "1":
            return True
        case "false" | "off" | "no" | "0" | "":
            return False
    raise ValueError(f"expected true or false, not {value!r}")


def whole_number(least: int, limit: int) -> Parse:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,15}", value.strip()) or not least <= int(value) <= limit:
            raise ValueError(f"expected a whole number from {least} to {limit}, not {value!r}")
        return int(value)

    return parse


port = whole_number(0, 65535)


def one_of(*choices: str) -> Parse:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"expected {' or '.join(choices)}, not {value!r}")
        return value

    return parse


def log_format(value: str) -> str:
    if value:
        one_of("text", "json")(value)
    return value


def comma_separated(value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip())


def networks(value: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    try:
        return tuple(ipaddress.ip_network(word) for word in comma_separated(value))
    except ValueError as error:
        raise ValueError(f"expected comma-separated CIDRs such as 10.0.0.0/8: {error}") from error


def base_url(value: str) -> str:
    """Parse an origin. A path is rejected: some clients build addresses from the origin alone."""
    if not value:
        return ""
    parts = urlsplit(value.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError(f"expected an address such as https://hub.example, not {value!r}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("the public address must not have a path, query or fragment")
    if parts.port == 0:
        raise ValueError("port 0 cannot be part of a public address")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def address(*schemes: str) -> Parse:
    def parse(value: str) -> str:
        parts = urlsplit(text(value))
        if value.strip() and (parts.scheme not in schemes or not parts.hostname):
            raise ValueError(f"expected an address such as {schemes[0]}://host")
        # Raises if the port is not a number up to 65535.
        _ = parts.port
        return text(value)

    return parse


def package_index(value: str) -> str:
    """Parse the address of a package index, which code of Spaces can read."""
    found: str = address("http", "https")(value)
    if "@" in urlsplit(found).netloc:
        raise ValueError("must not contain a user or password: the code of Spaces could read it")
    return found


def tunnel_host(value: str) -> str:
    """Parse a host name with an optional port, whose subdomains lead to this hub."""
    host = text(value).lower()
    parts = urlsplit(f"http://{host}")
    if host and (parts.netloc != host or not re.fullmatch(r"[a-z0-9.-]*[a-z][a-z0-9-]*(:[0-9]+)?", host)):
        raise ValueError("expected a host name such as tunnels.example.org")
    # Raises if the port is not a number up to 65535.
    _ = parts.port
    return host


def upstream(value: str) -> str:
    """Parse the base address of a service, without a slash at the end. Paths of requests are appended to it."""
    base = text(value).rstrip("/")
    parts = urlsplit(base)
    if base and (parts.scheme not in ("http", "https") or not parts.hostname or not re.fullmatch("[!-~]+", base)):
        raise ValueError("expected an address such as http://127.0.0.1:9000")
    if "@" in parts.netloc or "?" in base or "#" in base:
        raise ValueError("the address must not have a user name, query or fragment")
    # Raises if the port is not a number up to 65535.
    _ = parts.port
    return base


def mail_sender(value: str) -> str:
    sender = text(value)
    _, address = parseaddr(sender)
    if sender and not (address.isascii() and re.fullmatch(r"[^\s@]+@[^\s@]+", address)):
        raise ValueError("expected an address such as hub@example.org or Our hub <hub@example.org>")
    return sender


def secret_key(value: str) -> str:
    for key in comma_separated(value):
        if len(key) < SHORTEST_SECRET:
            raise ValueError(f"each key needs at least {SHORTEST_SECRET} characters; one has {len(key)}")
    return ",".join(comma_separated(value))


def listen_address(value: str) -> str:
    host, colon, number = value.strip().rpartition(":")
    if value.strip() and not (host and colon and number.isdigit() and int(number) < 65536):
        raise ValueError(f"expected host:port, not {value!r}")
    return value.strip()


def is_loopback(host: str) -> bool:
    """Whether a host is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def from_toml(value: Any) -> str:
    """Convert a TOML value to the text that an environment variable would have."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return ",".join(value)
    raise ValueError("expected a string, a number, true, false or a list of strings")


def is_scope_name(name: str) -> bool:
    """Whether a name is a scope token (RFC 6749 section 3.3), in lower case like the built-in scopes."""
    return re.fullmatch(r"[a-z][a-z0-9:._-]{1,63}", name) is not None


def suggestion(key: str, known: Iterable[str], prefix: str = "") -> str:
    """A sentence that names the most similar known setting, or the documentation if none is similar."""
    close = difflib.get_close_matches(key.lower(), list(known), n=1)
    if not close:
        return "docs/settings.md lists all settings."
    return f"Did you mean {prefix}{close[0].upper() if prefix else close[0]}?"
