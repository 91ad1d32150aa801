"""Markdown of the documentation as HTML. The files are ours, so they are not sanitised like cards; HTML in them is
shown as text, and nothing gets a style or a script.

A fence may say more than its language: `tab=Name` puts consecutive fences into tabs, and `run` marks a block that a
test runs.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup
from msgspec import Struct

from hubgate.server.web.markdown import heading_slug
from hubgate.server.web.pages.docs import source
from hubgate.server.web.pages.docs.highlight import guess_language, highlight
from hubgate.server.web.pages.docs.navigation import resolve

# In samples; replaced by the client ID of an app of the reader.
CLIENT_ID = "your-client-id"
# How the files write the address of the hub.
_HUB = re.compile(r"\$hub\b|https://hub\.example(?![\w.-])")
_TAB = re.compile(r"\btab=(\S+)")


class Heading(Struct, frozen=True):
    level: int
    anchor: str
    text: str


class DocText(Struct, frozen=True):
    """A section of a page, as the search sees it."""

    heading: Heading
    text: str


class RenderedDoc(Struct, frozen=True):
    title: str
    html: Markup
    headings: tuple[Heading, ...]
    texts: tuple[DocText, ...]
    has_client_id: bool


@lru_cache(maxsize=512)
def render(group: str, name: str, base_url: str) -> RenderedDoc:
    env: dict[str, Any] = {"group": group, "codes": 0, "tables": 0, "tabs": 0}
    text = _HUB.sub(lambda _: base_url, source.read(group, name))
    tokens = _PARSER.parse(text, env)
    headings = _number_headings(tokens)
    _group_tabs(tokens)
    # The page shows its title above the table of contents.
    body = tokens[3:] if tokens and tokens[0].tag == "h1" else tokens
    html = Markup(_PARSER.renderer.render(body, _PARSER.options, env))  # noqa: S704 -- HTML in the files is escaped
    title = headings[0].text if headings else name
    return RenderedDoc(title, html, tuple(headings), tuple(_texts(tokens, headings)), CLIENT_ID in text)


def _number_headings(tokens: Sequence[Token]) -> list[Heading]:
    """Give headings ids, by the same rule as cards, so that links to headings also work where the files are stored."""
    headings: list[Heading] = []
    used: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            slug = heading_slug(inline.content)
            used[slug] = used.get(slug, -1) + 1
            anchor = f"{slug}-{used[slug]}" if used[slug] else slug
            token.attrSet("id", anchor)
            headings.append(Heading(int(token.tag[1]), anchor, _plain(inline)))
    return headings


def _group_tabs(tokens: Sequence[Token]) -> None:
    """Number consecutive fences with tabs. `meta` says where a fence is in its group: (first, last, all labels)."""
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and tokens[end].type == "fence" and _TAB.search(tokens[end].info):
            end += 1
        labels = [match[1].replace("_", " ") for token in tokens[at:end] if (match := _TAB.search(token.info))]
        for place, token in enumerate(tokens[at:end]):
            token.meta = {"place": place, "labels": labels}
        at = max(end, at + 1)


def _texts(tokens: Sequence[Token], headings: Sequence[Heading]) -> list[DocText]:
    found: list[DocText] = []
    remaining, words = iter(headings), list[str]()
    current: Heading | None = None
    in_heading = False
    for token in tokens:
        if token.type == "heading_open":
            if current:
                found.append(DocText(current, " ".join(words)))
            current, words, in_heading = next(remaining), [], True
        elif token.type == "heading_close":
            in_heading = False
        elif token.type == "inline" and not in_heading:
            words.append(_plain(token))
        elif token.type == "fence":
            words.append(" ".join(token.content.split()))
    if current:
        found.append(DocText(current, " ".join(words)))
    return found


def _plain(inline: Token) -> str:
    return "".join(
        " " if child.type == "softbreak" else child.content
        for child in inline.children or ()
        if child.type in ("text", "code_inline", "softbreak")
    )


def _fence(_: RendererHTML, tokens: Sequence[Token], at: int, __: OptionsDict, env: dict[str, Any]) -> str:
    token = tokens[at]
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    env["codes"] += 1
    block = code_block(f"code-{env['codes']}", token.content.rstrip("\n"), language)
    if "labels" not in token.meta or len(token.meta["labels"]) == 1:
        return block
    place, labels = token.meta["place"], token.meta["labels"]
    if place == 0:
        env["tabs"] += 1
    return tab(f"tabs-{env['tabs']}", place, labels, block)


def _code(_: RendererHTML, tokens: Sequence[Token], at: int, __: OptionsDict, env: dict[str, Any]) -> str:
    env["codes"] += 1
    return code_block(f"code-{env['codes']}", tokens[at].content.rstrip("\n"), "")


def code_block(anchor: str, code: str, language: str) -> Markup:
    """The markup of the macro `code` in parts/code.html, with highlighted code."""
    return Markup(
        '<div class="code code-lines">'
        '<pre tabindex="0" role="region" aria-label="Code {}"><code id="{}">{}</code></pre>'
        '<span class="copy"><span class="copied" role="status"></span>'
        '<button class="button button-small" type="button" data-copy="{}" hidden>'
        'Copy<span class="unseen"> code {}</span></button></span></div>\n'
    ).format(
        anchor.rpartition("-")[2],
        anchor,
        highlight(code, language or guess_language(code)),
        anchor,
        anchor.rpartition("-")[2],
    )


def tab(group: str, place: int, labels: Sequence[str], block: Markup) -> Markup:
    """One variant of a group. Radio buttons show one variant at a time, by CSS alone."""
    choice = Markup(
        '<input type="radio" class="tab-choice" name="{0}" id="{0}-{1}"{2}><label for="{0}-{1}">{3}</label>'
    )
    checked = Markup(" checked")
    start = Markup("")
    if place == 0:
        choices = (choice.format(group, at, "" if at else checked, label) for at, label in enumerate(labels))
        start = Markup('<fieldset class="tabs"><legend class="unseen">Language</legend>') + Markup("").join(choices)
    end = Markup("</fieldset>\n") if place == len(labels) - 1 else Markup("")
    return start + Markup('<div class="variant">{}</div>').format(block) + end


def _link_open(_: RendererHTML, tokens: Sequence[Token], at: int, __: OptionsDict, env: dict[str, Any]) -> str:
    address = resolve(str(tokens[at].attrs["href"]), env["group"])
    # A file that is not part of the documentation remains text.
    return str(Markup('<a href="{}">').format(address)) if address else "<span>"


def _link_close(_: RendererHTML, tokens: Sequence[Token], at: int, __: OptionsDict, env: dict[str, Any]) -> str:
    start = next(token for token in reversed(tokens[:at]) if token.type == "link_open")
    return "</a>" if resolve(str(start.attrs["href"]), env["group"]) else "</span>"


def _image(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: dict[str, Any]) -> str:
    """A drawing, in the page itself: its colours follow the theme."""
    label = renderer.renderInlineAsText(tokens[at].children, options, env)
    drawing = source.read_file(str(tokens[at].attrs["src"]))
    region = Markup('<span class="drawing" role="region" tabindex="0" aria-label="{}">{}</span>')
    return str(region.format(label, Markup(drawing)))  # noqa: S704 -- our own file


def _table_open(*arguments: Any) -> str:
    env = arguments[-1]
    env["tables"] += 1
    return f'<div class="table" role="region" tabindex="0" aria-label="Table {env["tables"]}"><table>'


def _cell(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    """Columns are aligned with a class: a page has no style attributes."""
    token = tokens[at]
    number = " class=number" if "right" in str(token.attrs.get("style", "")) else ""
    scope = " scope=col" if token.tag == "th" else ""
    return f"<{token.tag}{scope}{number}>"


_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_PARSER.add_render_rule("fence", _fence)
_PARSER.add_render_rule("code_block", _code)
_PARSER.add_render_rule("link_open", _link_open)
_PARSER.add_render_rule("link_close", _link_close)
_PARSER.add_render_rule("image", _image)
_PARSER.add_render_rule("th_open", _cell)
_PARSER.add_render_rule("td_open", _cell)
_PARSER.add_render_rule("table_open", _table_open)
_PARSER.add_render_rule("table_close", lambda *_: "</table></div>\n")
