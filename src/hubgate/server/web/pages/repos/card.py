"""A repo's front page: its README, or instructions for adding files."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

import msgspec
from markupsafe import Markup

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.hub.git import objects, trees
from hubgate.server.hub.git.objects import EntryType
from hubgate.server.hub.git.threads import in_text_thread
from hubgate.server.hub.repos.card import README, BadFrontMatter, parse_front_matter, split_readme
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.web.markdown import DocumentLocation, render_markdown
from hubgate.server.web.pages.repos.access import gate_panel
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.untrusted_text import clean

MAX_FACTS = 20
LONGEST_FACT = 200
MAX_TAGS = 24
# Files that a new repo may have (hub/repos/creation.py).
_INITIAL_FILES = {".gitattributes", README}


class Readme(msgspec.Struct, frozen=True):
    text: Markup
    # Names and values of the front matter, as text.
    facts: list[tuple[str, list[str]]]
    # The error in the front matter, for users who can fix it.
    problem: str = ""


def routes(base: RepoPageContext) -> list[Route]:
    async def card(request: HubRequest, repo: Repo) -> Response:
        readme = await read(base, repo)
        may_write = base.may(request, repo, Action.REPO_WRITE)
        return base.show(
            request,
            repo,
            "card.html",
            "card",
            readme=readme,
            empty=not (readme and readme.text.strip()) and await _is_empty(base, repo),
            may_write=may_write,
            gate_panel=await gate_panel(base, request, repo),
            commands=_commands(base.repos.base_url, repo),
            tags=[clean(tag) for tag in repo.tag_list[:MAX_TAGS]],
        )

    async def redirect_from_clone_address(_: HubRequest, repo: Repo) -> Response:
        return RedirectResponse(repo.path, 303)

    return [
        *base.views("", card, "The card of a repo"),
        *base.views(".git", redirect_from_clone_address, "Redirect from the clone address of a repo"),
    ]


async def read(base: RepoPageContext, repo: Repo) -> Readme | None:
    """Read the README at the head; None if it is missing or cannot be shown."""
    if repo.head_sha is None:
        return None
    folder = base.repos.folders.of(repo.id)
    entry = await objects.entry_at(folder, repo.head_sha, README)
    if entry is None or entry.type is not EntryType.FILE or entry.pointer or entry.size > objects.MAX_BLOB_IN_MEMORY:
        return None
    text = (await objects.small_blob(folder, entry.sha)).decode(errors="replace")
    return await in_text_thread(_readme, text, DocumentLocation(repo.path, "main"))


def _readme(text: str, location: DocumentLocation) -> Readme:
    front_matter, body = split_readme(text)
    shown = render_markdown(body, location)
    try:
        return Readme(shown, facts_of(parse_front_matter(front_matter)) if front_matter else [])
    except BadFrontMatter as error:
        return Readme(shown, [], str(error))


def facts_of(data: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the first facts of the front matter; nested values are omitted."""
    facts = []
    for name, value in list(data.items())[:MAX_FACTS]:
        items = value if isinstance(value, list) else [value]
        texts = [_fact_text(item) for item in items[:MAX_FACTS] if isinstance(item, (str, int, float))]
        if texts:
            facts.append((clean(name)[:LONGEST_FACT], texts))
    return facts


def _fact_text(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = clean(" ".join(text.split()))
    return text if len(text) <= LONGEST_FACT else text[:LONGEST_FACT] + "…"


async def _is_empty(base: RepoPageContext, repo: Repo) -> bool:
    """Whether the repo contains only its initial files."""
    if repo.head_sha is None:
        return True
    folder, limit = base.repos.folders.of(repo.id), len(_INITIAL_FILES) + 1
    found = await trees.list_entries(folder, repo.head_sha, "", recursive=False, after="", limit=limit)
    return {entry.path for entry in found or []} <= _INITIAL_FILES


class Commands(msgspec.Struct, frozen=True):
    download: str
    upload: str
    clone: str
    push: str


def _commands(base_url: str, repo: Repo) -> Commands:
    """Shell commands that download or upload the repo's files, with the address of this hub."""
    kind = "" if repo.repo_type is RepoType.MODEL else f" --repo-type {repo.type}"
    endpoint, url = f"export HF_ENDPOINT={quote(base_url)}\n", base_url + repo.path
    return Commands(
        download=f"{endpoint}hf download {repo.full_name}{kind}",
        upload=f"{endpoint}hf auth login\nhf upload {repo.full_name} .{kind}",
        clone=f"git clone {url}",
        push=(
            f"git lfs install\ngit clone {url}\ncd {repo.name}\n"
            '# put your files here\ngit add .\ngit commit -m "First files"\ngit push'
        ),
    )
