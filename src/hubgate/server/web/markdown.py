"""Markdown of strangers as HTML that can do no harm: rendered, then cut down to an allow-list, which has the last word.

Nothing runs, nothing is styled, nothing is loaded from elsewhere; ids get a prefix, so that none of them is taken for
one of the page's own. Relative links lead to the repo, and relative images to its files.
"""

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
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

from hubgate.server.jobs.job import checkpoint

# A tenth of a megabyte takes a second. What is longer, or full of what makes parsers go back, is shown as it is.
LONGEST = 100_000
MOST_LINES = 10_000
MOST_OPENED = 4_000
# Of all tables together.
MOST_CELLS = 30_000
# Characters; those of a link that is written out may triple when they are encoded.
MOST_OF_TARGETS = 4 * LONGEST
PREFIX = "user-content-"
# Of files that are shown rendered.
ENDINGS = (".md", ".markdown")

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
    # The frame in which wide tables scroll.
    "div": {**_ALIGN, "class": {"table"}, "role": {"region"}, "tabindex": {"0"}, "aria-label": {"Table"}},
}
_GONE_WITH_CONTENT = {"script", "style", "iframe", "object", "embed", "noscript", "template", "textarea", "select"}


@dataclass(frozen=True)
class Place:
    """Where a text stands: the repo's address, the revision, the folder of the file."""

    repo: str
    rev: str
    folder: str = ""

    def link(self, target: str) -> str:
        """Where a link in the text leads, as an address on this hub or elsewhere."""
        if target.startswith("#"):
            return f"#{PREFIX}{target[1:]}"
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            return target
        inside = self._inside(parts.path)
        verb = "tree" if parts.path.endswith("/") or not inside else "blob"
        # Of ids that texts brought along; lines of other files have ids of the page's own.
        prefix = PREFIX if verb == "blob" and inside.lower().endswith(ENDINGS) else ""
        return self._address(verb, inside) + (f"#{prefix}{parts.fragment}" if parts.fragment else "")

    def image(self, source: str) -> str | None:
        """None for what is not ours: a page loads nothing from elsewhere, which would tell others who reads it."""
        parts = urlsplit(source)
        if parts.scheme or parts.netloc or not parts.path:
            return None
        return self._address("resolve", self._inside(parts.path))

    def _inside(self, path: str) -> str:
        """From the top of the repo; nothing leads out of it."""
        start = "/" if path.startswith("/") else f"/{self.folder}/"
        return posixpath.normpath(f"{start}{unquote(path)}").strip("/")

    def _address(self, verb: str, inside: str) -> str:
        return f"{self.repo}/{verb}/{quote(self.rev, safe='')}{'/' if inside else ''}{quote(inside)}"


def rendered(text: str, place: Place) -> Markup:
    """Takes time: not on the event loop."""
    opened = max(text.count(opening) for opening in "[<")
    lines = text.count("\n") + text.count("\r") - text.count("\r\n")
    if len(text) > LONGEST or lines > MOST_LINES or opened > MOST_OPENED:
        return _as_it_is(text)
    return _remembered(text, place)


def _as_it_is(text: str) -> Markup:
    return Markup("<pre tabindex=0>{}</pre>").format(text[:LONGEST])


# Cards are read more often than written.
@lru_cache(maxsize=32)
def _remembered(text: str, place: Place) -> Markup:
    env: dict[str, Any] = {"place": place, "cells": 0}
    tokens = _PARSER.parse(text, env)
    if _length_of_targets(tokens) > MOST_OF_TARGETS:
        return _as_it_is(text)
    return harmless(_PARSER.renderer.render(tokens, _PARSER.options, env), place)


def _length_of_targets(tokens: Sequence[Token]) -> int:
    """Of all addresses and titles: one that is defined once can be referred to a thousand times."""
    inline = (child for token in tokens for child in token.children or ())
    return sum(len(str(value)) for child in inline for value in child.attrs.values())


def harmless(html: str, place: Place) -> Markup:
    def judged(tag: str, attribute: str, value: str) -> str | None:
        # An exception in here would leave the value as it is.
        try:
            if (tag, attribute) == ("a", "href"):
                return place.link(value.strip())
            if (tag, attribute) == ("img", "src"):
                return place.image(value.strip())
        except ValueError:
            return None
        return value

    return Markup(  # noqa: S704 -- the allow-list has had the last word
        nh3.clean(
            html,
            tags=_TAGS,
            clean_content_tags=_GONE_WITH_CONTENT,
            attributes=_ATTRIBUTES,
            tag_attribute_values=_VALUES,
            set_tag_attribute_values={"pre": {"tabindex": "0"}, "img": {"loading": "lazy"}},
            attribute_filter=judged,
            url_schemes={"http", "https", "mailto"},
            link_rel="nofollow noopener",
            id_prefix=PREFIX,
        )
    )


def _image(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Any) -> str:
    """One from elsewhere becomes a link to it."""
    source, alt = str(tokens[at].attrs["src"]), renderer.renderInlineAsText(tokens[at].children, options, env)
    try:
        shown = env["place"].image(source)
    except ValueError:
        shown = None
    if shown:
        return str(Markup('<img src="{}" alt="{}">').format(source, alt))
    return str(Markup('<a href="{}">{}</a>').format(source, alt or "Image"))


def _fence(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f"<pre><code>{escape(tokens[at].content)}</code></pre>\n"


def _mend(state: Any) -> None:
    """Headings begin below the page's own and can be linked to; columns are aligned without a style attribute; tasks
    are ticked in words.
    """
    headings = [token for token in state.tokens if token.type in ("heading_open", "heading_close")]
    lift = 2 - min((int(token.tag[1]) for token in headings), default=2)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1]) + lift, 6)}"
    taken: dict[str, int] = {}
    for position, token in enumerate(state.tokens):
        if token.type == "heading_open":
            slug = _slug(state.tokens[position + 1].content)
            taken[slug] = taken.get(slug, -1) + 1
            token.attrSet("id", f"{slug}-{taken[slug]}" if taken[slug] else slug)
        elif token.type in ("th_open", "td_open") and "style" in token.attrs:
            token.attrSet("align", str(token.attrs.pop("style")).rpartition(":")[2])
        elif token.type == "list_item_open" and (child := _first_text(state.tokens[position + 1 : position + 3])):
            child.content = re.sub(r"\A\[([ xX])\] ", lambda box: _BOXES[box[1].lower()], child.content)


def _checkpoint(*_: Any) -> bool:
    """A rule that never applies: asked at every block, it ends the work for a reader who is gone."""
    checkpoint()
    return False


def _inline_checkpoint(*_: Any) -> bool:
    """The same within a block, asked at every piece of text."""
    checkpoint()
    return False


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A short row is filled up to the width of the first, so that a few kilobytes stand for a million cells. From where
    there would be too many on, tables stay text.
    """
    if state.env["cells"] > MOST_CELLS or not table(state, start, end, True):
        return False
    if silent:
        return True
    columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
    rows = next((line for line in range(start, end) if state.isEmpty(line)), end) - start
    state.env["cells"] += columns * rows
    return state.env["cells"] <= MOST_CELLS and table(state, start, end, False)


_BOXES = {" ": "☐ ", "x": "☑ "}


def _first_text(tokens: Sequence[Token]) -> Token | None:
    """Of a list item, if it begins with text."""
    children = tokens[-1].children if tokens and tokens[-1].type == "inline" else None
    return children[0] if children and children[0].type == "text" else None


def _slug(heading: str) -> str:
    """As others make them, so that tables of contents keep working."""
    plain = re.sub(r"[^\w\- ]", "", unicodedata.normalize("NFC", heading).strip().lower())
    return plain.replace(" ", "-")[:100] or "section"


_TABLE = '<div class="table" role="region" tabindex="0" aria-label="Table"><table>'
_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_PARSER.block.ruler.before("table", "checkpoint", _checkpoint, {"alt": ["paragraph", "reference"]})
_PARSER.inline.ruler.before("text", "checkpoint", _inline_checkpoint)
_PARSER.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
_PARSER.core.ruler.push("mend", _mend)
_PARSER.add_render_rule("image", _image)
_PARSER.add_render_rule("fence", _fence)
_PARSER.add_render_rule("table_open", lambda *_: _TABLE)
_PARSER.add_render_rule("table_close", lambda *_: "</table></div>")
