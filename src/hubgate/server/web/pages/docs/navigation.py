"""The sections of the documentation by reader, and the addresses of its pages.

A new file in `docs/` needs a line here: a test fails for a page that no section lists. Decisions are listed by number.
"""

import posixpath
import re
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.web.pages.docs import source
from hubgate.server.web.pages.docs.source import DECISIONS, GUIDES, REFERENCE

INDEX = "/docs"
SEARCH = f"{INDEX}/search"


class DocLink(Struct, frozen=True):
    """A page in the navigation. `group` and `name` are empty for pages that other modules render."""

    address: str
    title: str
    summary: str
    group: str = ""
    name: str = ""


class Section(Struct, frozen=True):
    slug: str
    title: str
    summary: str
    pages: tuple[DocLink, ...]


def _page(address: str, title: str, summary: str) -> DocLink:
    return DocLink(f"{INDEX}/{address}", title, summary)


def _guide(name: str, summary: str, title: str = "") -> tuple[str, str, str, str]:
    return GUIDES, name, title, summary


def _reference(name: str, summary: str) -> tuple[str, str, str, str]:
    return REFERENCE, name, "", summary


_Row = DocLink | tuple[str, str, str, str]
_SECTIONS: tuple[tuple[str, str, str, tuple[_Row, ...]], ...] = (
    (
        "start",
        "Quick start",
        "From an empty folder to an account, a repo and a delivery.",
        (
            _guide("installing", "From a checkout or a wheel: the client, the receiver library, the hub."),
            _guide("quick-start", "A hub on your computer, an account, a token, a repo and its first event."),
            _guide("demo", "A hub with example content, an app and a receiver, with a tour of eight steps."),
            _guide("api-walk", "The same with curl, Python and JavaScript: repos, files and webhooks over HTTP."),
            _guide("clients", "hf, huggingface_hub, transformers, JavaScript and git-lfs with this hub."),
            _guide("client", "The Python library, for threads and for event loops."),
            _guide("cli", "Sign in, watch, upload and download from a terminal."),
        ),
    ),
    (
        "apps",
        "For app developers",
        "People sign in to your app with their account here.",
        (
            _page("sign-in", "Sign in with this hub", "Sample code with your client ID, buttons, tokens and scopes."),
            _guide("apps", "Register an app, change it, sign users out, apps that register themselves."),
            _page("cimd", "Check a metadata document", "An app that publishes a document need not be registered."),
            _guide("consent", "The authorization request, the consent page and connected apps."),
            _guide("tokens-for-apps", "Redeem codes, refresh, introspect and revoke tokens; claims by scope."),
            _guide("refresh-tokens", "Which apps get them, how they rotate, what to do when a refresh fails."),
            _guide("device", "Sign-in on a device without a browser."),
            _guide("mcp", "Protect an MCP server with this hub's tokens, and connect MCP clients."),
            _page("protect", "Protect your own API or MCP server", "Sample code with the ID of your own server."),
            _guide("protect", "Registration of servers, MCP clients, verification.", "Resource servers"),
            _guide("conformance", "Which parts of OpenID Connect are offered."),
        ),
    ),
    (
        "organizations",
        "For organization admins",
        "Members, tokens for members, and the audit log.",
        (
            _guide("organizations", "Roles, invitations, names, plans."),
            _guide("token-exchange", "Short-lived tokens for members, by e-mail address."),
            _guide("audit", "What is recorded, how to follow it, how to verify an export."),
        ),
    ),
    (
        "webhooks",
        "For webhook users",
        "Get a POST when something changes.",
        (
            _page("webhooks", "Webhooks and events", "The request, its headers, and every event with its fields."),
            _guide("webhooks", "Create webhooks, pull events, find missing deliveries, replay.", "Webhooks in detail"),
            _guide("verify-deliveries", "Verify a delivery in Python, JavaScript, Go, Java and Rust."),
            _guide("receiver", "The receiver library: handlers, background work, tests, loops."),
            _guide("spaces", "Let the hub run a receiver."),
            _guide("events", "The events of a repo, and how to mirror a repo."),
        ),
    ),
    (
        "repos",
        "Repos and collaboration",
        "Models and datasets, in the browser, with git and over HTTP.",
        (
            _guide("repos", "Search, create, browse and manage repos in the browser."),
            _guide("git", "Clone and push with git."),
            _guide("repos-api", "Create, fill, read and delete repos from a script."),
            _guide("discussions", "Discuss a repo, propose changes and merge them."),
            _guide("gated", "Decide who reads a repo's files."),
            _guide("collections", "Group repos."),
            _guide("tokens", "Personal tokens, and your account."),
        ),
    ),
    (
        "operators",
        "For operators",
        "Run a hub for others.",
        (
            _guide("operating", "PostgreSQL, object stores, quotas, keys, backup, metrics."),
            _guide("deployment", "Containers, systemd, upgrades."),
            _guide("reverse-proxy", "nginx, Caddy, certificates, and what any other proxy needs."),
            _guide("hardening", "A checklist for a hub on the internet."),
            _guide("key-compromise", "What to do when a secret or a key has leaked."),
            _guide("dashboards", "Metrics, a Grafana dashboard and alerts."),
            _guide("capacity", "Figures measured on a small machine, and what limits a hub first."),
            _guide("accounts", "Setup, sign-up, mail and rate limits."),
            _guide("gateway", "Offer inference and jobs with services that you run."),
        ),
    ),
    (
        "reference",
        "Reference",
        "Generated from the code.",
        (
            _page("api", "API", "Every route with an example request and response, one page per subject."),
            _guide("settings", "Every setting with its default."),
            _reference("commands", "Every command of hubgate with its arguments."),
            _reference("scopes", "What each scope allows."),
            _reference("events", "Every kind of event, with an example payload."),
            _reference("errors", "Error codes and statuses, with causes and cures."),
            _guide("http", "Errors, paging, request ids, browsers and cookies."),
        ),
    ),
    (
        "inside",
        "How it works",
        "For people who change hubgate, and for those who have to trust it.",
        (
            _guide("architecture", "A map of the hub, and four journeys through it."),
            _guide("inside", "The code in detail.", "Internals"),
            _guide("threats", "What is promised, and where each promise is tested.", "Threat model"),
        ),
    ),
)


@cache
def sections() -> tuple[Section, ...]:
    """All sections with the pages whose files exist, and the decisions after them."""
    found = [
        Section(slug, title, summary, tuple(link for row in rows if (link := _link(row))))
        for slug, title, summary, rows in _SECTIONS
    ]
    decisions = tuple(
        _file(DECISIONS, name, f"{int(name[:4])}. {_title(DECISIONS, name)}", "")
        for group, name in source.names()
        if group == DECISIONS
    )
    return (*found, Section("decisions", "Decisions", "Choices that are not obvious, with their reasons.", decisions))


def _link(row: _Row) -> DocLink | None:
    if isinstance(row, DocLink):
        return row
    group, name, title, summary = row
    return _file(group, name, title or _title(group, name), summary) if (group, name) in source.names() else None


def _file(group: str, name: str, title: str, summary: str) -> DocLink:
    return DocLink(f"{INDEX}/{group}/{name}", title, summary, group, name)


def _title(group: str, name: str) -> str:
    first = source.read(group, name).partition("\n")[0]
    return re.sub(r"^# *(?:\d+\.? *)?|[`*]", "", first)


@cache
def by_address() -> dict[str, tuple[Section, DocLink]]:
    return {link.address: (section, link) for section in sections() for link in section.pages}


def side_of(address: str) -> dict[str, Any]:
    """What the navigation beside a page needs, for its template."""
    return {"sections": sections(), "current": by_address()[address][0], "address": address}


def resolve(target: str, group: str) -> str | None:
    """The address that a link in a page of `group` leads to, or None if it leads to a file that is not a page."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
        return target
    here = "" if group == GUIDES else f"{group}/"
    path = posixpath.normpath(here + parts.path)
    folder, _, name = path.rpartition("/")
    page = (folder or GUIDES, name.removesuffix(".md"))
    if path in source.DOWNLOADS:
        return f"{INDEX}/{path}"
    if not name.endswith(".md") or page not in source.names():
        return f"{INDEX}#decisions" if path == DECISIONS else None
    return f"{INDEX}/{page[0]}/{page[1]}" + (f"#{parts.fragment}" if parts.fragment else "")
