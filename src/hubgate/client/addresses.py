"""Validates origins, and builds paths from names. Whether a token may be sent to a URL depends on its origin."""

import re
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from hubgate.client.errors import UnexpectedResponse

REPO_TYPES = ("model", "dataset", "space")

_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
_PORTS = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """The origin of a URL: scheme, host and port (RFC 6454). Raises ValueError."""
    parts = urlsplit(url)
    port = parts.port
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{url[:200]!r} is not an http or https address. An example: https://hub.example")
    if parts.username is not None or parts.password is not None:
        # httpx would send them as an Authorization header.
        raise ValueError("An address must not contain a user name or a password.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + ("" if port in (None, _PORTS[parts.scheme]) else f":{port}")


def checked_endpoint(given: str) -> str:
    """The origin of a hub's address. Raises ValueError if the address has a path."""
    text = given.strip()
    origin, parts = origin_of(text), urlsplit(text)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"The address of a hub must not have a path. Use {origin}")
    return origin


def checked_url(url: object) -> str:
    """Validate an address from a response of the hub."""
    try:
        if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url:
            origin_of(url)
            return url
    except ValueError:
        pass
    raise UnexpectedResponse(f"The hub sent an invalid address: {str(url)[:100]!r}")


def checked_name(given: object) -> str:
    """Return a non-empty string, or raise ValueError. Scripts with an unset variable pass None."""
    if not isinstance(given, str) or not given:
        raise ValueError(f"{given!r} is not a name.")
    return given


def path_segment(name: str) -> str:
    """Quote a name as one segment of a path. Raises ValueError."""
    if checked_name(name) in (".", ".."):
        raise ValueError(f"{name!r} is not a name.")
    return quote(name, safe="")


def checked_type(repo_type: str | None) -> str:
    if repo_type is None:
        return "model"
    if repo_type not in REPO_TYPES:
        raise ValueError(f"type must be one of {', '.join(REPO_TYPES)}.")
    return repo_type


def checked_repo(repo: str) -> str:
    """Validate a repo name and return it as a string."""
    namespace, slash, name = str(repo).partition("/")
    if not slash or not all(_NAME.match(part) and part.strip(".") for part in (namespace, name)):
        raise ValueError(f"Write the repo as namespace/name, not {str(repo)[:120]!r}")
    return str(repo)


def api_path(repo: str, repo_type: str | None) -> str:
    return f"/api/{checked_type(repo_type)}s/{checked_repo(repo)}"


def page_path(repo: str, repo_type: str | None) -> str:
    kind = checked_type(repo_type)
    return f"/{checked_repo(repo)}" if kind == "model" else f"/{kind}s/{checked_repo(repo)}"


def file_path(path: object) -> str:
    """Quote a path in a repo. Raises ValueError if it is not a path or leads out of the repo."""
    if not isinstance(path, str) or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"{str(path)[:200]!r} is not a path inside a repo.")
    return quote(path, safe="/")


def local_path(path: str, *, windows: bool) -> PurePosixPath:
    """The local path of a repo's file below the target folder. The hub's file names must not escape that folder."""
    parts = path.split("/")
    unsafe = any(part in ("", ".", "..") or "\0" in part for part in parts)
    if windows:
        unsafe = unsafe or any(set(part) & set('\\:*?"<>|') or part != part.rstrip(". ") for part in parts)
    if unsafe:
        raise UnexpectedResponse(f"The repo has a file whose name cannot be used here: {path[:200]!r}")
    return PurePosixPath(*parts)
