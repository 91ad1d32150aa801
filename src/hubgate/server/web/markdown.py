"""User-written Markdown rendered as safe HTML: the output of the parser is reduced to an allow-list. Nothing runs,
nothing is styled, nothing is loaded from other hosts. Ids get a prefix, so that they cannot collide with ids of the
page. Relative links point to pages of the repo, relative images to its files.
"""

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape
from msgspec import Struct

from hubgate.server.jobs.job import checkpoint

# Rendering 100 kB takes about a second. Longer texts, and texts that make the parser backtrack, are shown as plain
# text.
LONGEST_TEXT = 100_000
MAX_LINES = 10_000
MAX_BRACKETS = 4_000
# All tables of a text together.
MAX_CELLS = 30_000
# Characters in all link targets and titles. Encoding can triple the length of a target.
LONGEST_TARGETS = 4 * LONGEST_TEXT
PREFIX = "user-content-"
# File extensions that are rendered.
EXTENSIONS = (".md", ".markdown")

_BLOCKS = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6"}
_TAGS = _BLOCKS | set(
    """
    a abbr b blockquote br code dd del details dl dt em hr i img ins kbd li ol p pre q s samp small span strong sub
    summary sup table tbody td tfoot th thead tr ul var
    """.split()  # noqa: SIM905 -- a paragraph reads better than forty lines
)
_ATTRIBUTES: dict[str, set[str]] = {
    "*": {"dir", "id", "lang"},
    "a": {"href", "title"},
    "abbr": {"title"},
    "details": {"open"},
    "img": {"alt", "height", "src", "title", "width"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
_ALIGN = {"align": {"left", "center", "right"}}
_VALUES: dict[str, dict[str, set[str]]] = {
    **dict.fromkeys((*_BLOCKS, "img", "td", "th"), _ALIGN),
    # Wrapper in which wide tables scroll.
    "div": {**_ALIGN, "class": {"table"}, "role": {"region"}, "tabindex": {"0"}, "aria-label": {"Table"}},
}
_REMOVED_WITH_CONTENT = {"script", "style", "iframe", "object", "embed", "noscript", "template", "textarea", "select"}


class DocumentLocation(Struct, frozen=True):
    """The location of a text: the repo's address, the revision, the folder of the file."""

    repo: str
    rev: str
    folder: str = ""

    def link(self, target: str) -> str:
        """Return the address that a link in the text leads to, on this hub or elsewhere."""
        if target.startswith("#"):
            return f"#{PREFIX}{target[1:]}"
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            return target
        repo_path = self._path_in_repo(parts.path)
        verb = "tree" if parts.path.endswith("/") or not repo_path else "blob"
        # Headings of rendered texts have prefixed ids; line numbers of other files do not.
        prefix = PREFIX if verb == "blob" and repo_path.lower().endswith(EXTENSIONS) else ""
        return self._address(verb, repo_path) + (f"#{prefix}{parts.fragment}" if parts.fragment else "")

    def image(self, source: str) -> str | None:
        """Return the address of an image, or None for another host: loading it would reveal who reads the page."""
        parts = urlsplit(source)
        if parts.scheme or parts.netloc or not parts.path:
            return None
        return self._address("resolve", self._path_in_repo(parts.path))

    def _path_in_repo(self, path: str) -> str:
        """Return a path relative to the root of the repo; `..` cannot leave it."""
        start = "/" if path.startswith("/") else f"/{self.folder}/"
        return posixpath.normpath(f"{start}{unquote(path)}").strip("/")

    def _address(self, verb: str, repo_path: str) -> str:
        return f"{self.repo}/{verb}/{quote(self.rev, safe='')}{'/' if repo_path else ''}{quote(repo_path)}"


def render_markdown(text: str, location: DocumentLocation) -> Markup:
    """Render Markdown. Slow: do not call on the event loop."""
    opened = max(text.count(opening) for opening in "[<")
    lines = text.count("\n") + text.count("\r") - text.count("\r\n")
    if len(text) > LONGEST_TEXT or lines > MAX_LINES or opened > MAX_BRACKETS:
        return plain_text(text)
    return _cached(text, location)


def plain_text(text: str) -> Markup:
    return Markup("<pre tabindex=0>{}</pre>").format(text[:LONGEST_TEXT])


# Cards are read more often than written, so results are cached.
@lru_cache(maxsize=32)
def _cached(text: str, location: DocumentLocation) -> Markup:
    env: dict[str, Any] = {"location": location, "cells": 0}
    tokens = _PARSER.parse(text, env)
    if _target_length(tokens) > LONGEST_TARGETS:
        return plain_text(text)
    return sanitize(_PARSER.renderer.render(tokens, _PARSER.options, env), location)


def _target_length(tokens: Sequence[Token]) -> int:
    """Length of all addresses and titles: a link defined once can be referenced a thousand times."""
    inline = (child for token in tokens for child in token.children or ())
    return sum(len(str(value)) for child in inline for value in child.attrs.values())


def sanitize(html: str, location: DocumentLocation) -> Markup:
    def filter_attribute(tag: str, attribute: str, value: str) -> str | None:
        # If the filter raises, nh3 leaves the value unchanged.
        try:
            if (tag, attribute) == ("a", "href"):
                return location.link(value.strip())
            if (tag, attribute) == ("img", "src"):
                return location.image(value.strip())
        except ValueError:
            return None
        return value

    return Markup(  # noqa: S704 -- reduced to the allow-list
        nh3.clean(
            html,
            tags=_TAGS,
            clean_content_tags=_REMOVED_WITH_CONTENT,
            attributes=_ATTRIBUTES,
            tag_attribute_values=_VALUES,
            set_tag_attribute_values={"pre": {"tabindex": "0"}, "img": {"loading": "lazy"}},
            attribute_filter=filter_attribute,
            url_schemes={"http", "https", "mailto"},
            link_rel="nofollow noopener",
            id_prefix=PREFIX,
        )
    )


def _image(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
    """Render an image; an image of another host becomes a link."""
    source, alt = str(tokens[at].attrs["src"]), renderer.renderInlineAsText(tokens[at].children, options, env)
    try:
        address = env["location"].image(source)
    except ValueError:
        address = None
    if address:
        return str(Markup('<img src="{}" alt="{}">').format(source, alt))
    return str(Markup('<a href="{}">{}</a>').format(source, alt or "Image"))


def _fence(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f"<pre><code>{escape(tokens[at].content)}</code></pre>\n"


def _adjust_tokens(state: Any) -> None:
    """Shift headings so that the highest is h2 and give them ids, align columns without a style attribute, and replace
    task-list checkboxes with characters.
    """
    headings = [token for token in state.tokens if token.type in ("heading_open", "heading_close")]
    offset = 2 - min((int(token.tag[1]) for token in headings), default=2)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1]) + offset, 6)}"
    used: dict[str, int] = {}
    for position, token in enumerate(state.tokens):
        if token.type == "heading_open":
            slug = heading_slug(state.tokens[position + 1].content)
            used[slug] = used.get(slug, -1) + 1
            token.attrSet("id", f"{slug}-{used[slug]}" if used[slug] else slug)
        elif token.type in ("th_open", "td_open") and "style" in token.attrs:
            token.attrSet("align", str(token.attrs.pop("style")).rpartition(":")[2])
        elif token.type == "list_item_open" and (child := _first_text(state.tokens[position + 1 : position + 3])):
            child.content = re.sub(r"\A\[([ xX])\] ", lambda box: _BOXES[box[1].lower()], child.content)


def _checkpoint(*_: Any) -> bool:
    """A block rule that never matches: it runs at every block and stops the work if the client has disconnected."""
    checkpoint()
    return False


def _inline_checkpoint(*_: Any) -> bool:
    """An inline rule like `_checkpoint`: it runs at every piece of text."""
    checkpoint()
    return False


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table; with too many cells it remains text. The parser pads short rows to the width of the first, so a
    few kilobytes can produce a million cells.
    """
    if state.env["cells"] > MAX_CELLS or not table(state, start, end, True):
        return False
    if silent:
        return True
    columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
    rows = next((line for line in range(start, end) if state.isEmpty(line)), end) - start
    state.env["cells"] += columns * rows
    return state.env["cells"] <= MAX_CELLS and table(state, start, end, False)


_BOXES = {" ": "☐ ", "x": "☑ "}


def _first_text(tokens: Sequence[Token]) -> Token | None:
    """Return the first text of a list item, if the item begins with text."""
    children = tokens[-1].children if tokens and tokens[-1].type == "inline" else None
    return children[0] if children and children[0].type == "text" else None


def heading_slug(heading: str) -> str:
    """Return the id of a heading, by the rules of other hubs, so that existing tables of contents work."""
    plain = re.sub(r"[^\w\- ]", "", unicodedata.normalize("NFC", heading).strip().lower())
    return plain.replace(" ", "-")[:100] or "section"


_TABLE = '<div class="table" role="region" tabindex="0" aria-label="Table"><table>'
_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_PARSER.block.ruler.before("table", "checkpoint", _checkpoint, {"alt": ["paragraph", "reference"]})
_PARSER.inline.ruler.before("text", "checkpoint", _inline_checkpoint)
_PARSER.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
_PARSER.core.ruler.push("adjust", _adjust_tokens)
_PARSER.add_render_rule("image", _image)
_PARSER.add_render_rule("fence", _fence)
_PARSER.add_render_rule("table_open", lambda *_: _TABLE)
_PARSER.add_render_rule("table_close", lambda *_: "</table></div>")
