"""Markdown of strangers: how it is rendered, where its links lead, and that hostile text is harmless."""

import re
import time

import pytest

from hubgate.server.web.markdown import LONGEST_TEXT, DocumentLocation, render_markdown

HERE = DocumentLocation("/acme/tiny", "main")
DEEP = DocumentLocation("/datasets/acme/words", "v1.0", "docs/more")


def test_ordinary_text_is_rendered() -> None:
    html = render_markdown("# Tiny\n\nA *small* model, ~~large~~.\n\n```python\nprint('<hi>')\n```\n", HERE)
    assert '<h2 id="user-content-tiny">Tiny</h2>' in html
    assert "<em>small</em>" in html
    assert "<s>large</s>" in html
    assert "<pre tabindex=\"0\"><code>print('&lt;hi&gt;')\n</code></pre>" in html


def test_tables_scroll_and_are_aligned_without_style() -> None:
    html = render_markdown("| a | b |\n|:-:|--:|\n| 1 | 2 |\n", HERE)
    assert '<div class="table" role="region" tabindex="0" aria-label="Table"><table>' in html
    assert '<th align="center">a</th>' in html
    assert '<td align="right">2</td>' in html
    assert "style" not in html


def test_headings_start_below_the_pages_own_and_have_anchors() -> None:
    html = render_markdown("## How to use\n\n### More\n\n## How to use\n\n[up](#how-to-use)", HERE)
    assert '<h2 id="user-content-how-to-use">' in html
    assert '<h3 id="user-content-more">' in html
    assert '<h2 id="user-content-how-to-use-1">' in html
    assert 'href="#user-content-how-to-use"' in html


def test_task_lists_are_rendered() -> None:
    html = render_markdown("- [x] done\n- [ ] *open*\n- [x](a.md)\n-\n- > [ ] quoted\n", HERE)
    assert "<li>☑ done</li>" in html
    assert "<li>☐ <em>open</em></li>" in html
    assert ">x</a>" in html


@pytest.mark.parametrize(
    ("place", "target", "address"),
    [
        (HERE, "config.json", "/acme/tiny/blob/main/config.json"),
        (HERE, "./docs/", "/acme/tiny/tree/main/docs"),
        (HERE, ".", "/acme/tiny/tree/main"),
        (HERE, "../../../../etc/passwd", "/acme/tiny/blob/main/etc/passwd"),
        (HERE, "a%20b.md#part", "/acme/tiny/blob/main/a%20b.md#user-content-part"),
        (HERE, "A.MarkDown#part", "/acme/tiny/blob/main/A.MarkDown#user-content-part"),
        (HERE, "config.json#L3", "/acme/tiny/blob/main/config.json#L3"),
        (HERE, "docs/#L3", "/acme/tiny/tree/main/docs#L3"),
        (HERE, "#part", "#user-content-part"),
        (DEEP, "x.md", "/datasets/acme/words/blob/v1.0/docs/more/x.md"),
        (DEEP, "../x.md", "/datasets/acme/words/blob/v1.0/docs/x.md"),
        (DEEP, "/x.md", "/datasets/acme/words/blob/v1.0/x.md"),
        (HERE, "https://example.org/a?b=c", "https://example.org/a?b=c"),
        (HERE, "mailto:ada@example.org", "mailto:ada@example.org"),
    ],
)
def test_links_lead_into_the_repo_or_to_other_sites(place: DocumentLocation, target: str, address: str) -> None:
    html = render_markdown(f"[x]({target})", place)
    assert re.findall(r'href="([^"]*)"', html) == [address]
    assert 'rel="nofollow noopener"' in html


def test_images_are_loaded_from_the_repo() -> None:
    html = render_markdown('![a curve](img/loss%20curve.png)\n\n<img src="img/x.png" alt="x" onerror="alert(1)">', DEEP)
    assert '<img src="/datasets/acme/words/resolve/v1.0/docs/more/img/loss%20curve.png" alt="a curve"' in html
    assert 'src="/datasets/acme/words/resolve/v1.0/docs/more/img/x.png"' in html
    assert "onerror" not in html


def test_external_images_are_links_or_omitted() -> None:
    html = render_markdown(
        '![badge](https://img.example.org/b.svg)\n\n<img src="//evil.example/x.png" alt="pixel">', HERE
    )
    assert '<a href="https://img.example.org/b.svg" rel="nofollow noopener">badge</a>' in html
    assert "evil.example" not in html
    assert 'alt="pixel"' in html


HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<style>body{display:none}</style>",
    '<img src=x onerror="alert(1)">',
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    '<iframe src="javascript:alert(1)"></iframe>',
    '<form action="https://evil.example"><input name=password><button>Go</button></form>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    '<a href="javascript:alert(1)">x</a>',
    '<a href=" javascript:alert(1)">x</a>',
    '<a href="java&#10;script:alert(1)">x</a>',
    '<a href="vbscript:x">x</a>',
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg/onload=alert(1)>)",
    '<img src="data:image/png;base64,AAAA">',
    '<a href="http://[">x</a>',
    '<img src="http://[" alt="y">',
    "[x](http://[)",
    '<div style="position:fixed;inset:0" class="site-header" onclick="alert(1)">over everything</div>',
    '<p id="main" class="error-summary">x</p>',
    '<base href="https://evil.example/">',
    '<meta http-equiv="refresh" content="0;url=https://evil.example">',
    '<link rel="stylesheet" href="https://evil.example/x.css">',
    '<object data="x.swf"></object><embed src="x.swf">',
    '<button popovertarget="me">menu</button>',
    '<video src="https://evil.example/x.mp4" autoplay></video>',
    '"><img src=x onerror=alert(1)>',
    "`<img src=x onerror=alert(1)>`",
    "<!--><img src=x onerror=alert(1)>-->",
    "<a href='x' title='\"><script>alert(1)</script>'>x</a>",
    "| <script>alert(1)</script> |\n|--|\n| [x](javascript:1) |",
    '<input type="hidden" name="csrf">',
    '<a name="x" target="_top" href="https://e.example" ping="https://evil.example">x</a>',
]

_TAG = re.compile(r"<([a-z0-9]+)((?:\s[^<>]*)?)>")


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("wrap", ["{}", "- {}", "> text {} more", "# {}", "**{}**"])
def test_hostile_text_becomes_harmless(text: str, wrap: str) -> None:
    html = str(render_markdown(wrap.format(text), HERE))
    for tag, attributes in _TAG.findall(html):
        assert tag in {
            *("a", "p", "li", "ul", "blockquote", "h2", "strong", "code", "img", "pre", "div", "span"),
            *("table", "thead", "tbody", "tr", "th", "td", "em"),
        }, html
        names = re.findall(r'\s([a-z-]+)="', attributes)
        assert not [name for name in names if name.startswith("on") or name in ("style", "target", "ping", "name")], (
            html
        )
        for value in re.findall(r'(?:href|src)="([^"]*)"', attributes):
            assert value.startswith(("/acme/tiny/", "http://", "https://", "#")), html
        if tag == "img":
            assert 'src="http' not in attributes, html
        if "class=" in attributes:
            assert (tag, re.findall(r'class="([^"]*)"', attributes)) == ("div", ["table"]), html
        for value in re.findall(r'\sid="([^"]*)"', attributes):
            assert value.startswith("user-content-"), html


@pytest.mark.parametrize(
    "text",
    [
        "[" * LONGEST_TEXT,
        "![" * (LONGEST_TEXT // 2),
        "<div>" * (LONGEST_TEXT // 5),
        ">" * LONGEST_TEXT,
        "*a " * (LONGEST_TEXT // 3),
        "&" * LONGEST_TEXT,
        "- " * (LONGEST_TEXT // 2),
        "`a" * (LONGEST_TEXT // 2),
        "|" * LONGEST_TEXT + "\n" + "|-" * 1000,
        "a" * (LONGEST_TEXT * 10),
        "<p>" * 3999,
        "[" * 3999,
        "> " * 20 + "a\n" + "a\n" * 49_000,
        "\r" * LONGEST_TEXT,
        ("|a" * 256 + "\n" + "|-" * 256 + "\n" + "|\n" * 255 + "\n") * 60,
        "|-|-|\n" * 9_999,
    ],
    ids=lambda text: text[:6],
)
def test_no_text_takes_long_to_render(text: str) -> None:
    started = time.process_time()
    render_markdown(text, HERE)
    assert time.process_time() - started < 20


def test_no_text_grows_without_limit() -> None:
    """A link that is defined once and used a thousand times; tables whose rows are padded."""
    for text in (
        "[a]: /" + "x" * 80_000 + "\n\n" + "[a] " * 3_900,
        '[a]: /x "' + "y" * 80_000 + '"\n\n' + "[a] " * 3_900,
        ("|a" * 56 + "\n" + "|-" * 56 + "\n" + "|\n" * 55 + "\n") * 250,
    ):
        assert len(render_markdown(text, HERE)) < 10 * LONGEST_TEXT, text[:10]
    # Earlier ones are still shown.
    tables = render_markdown("|a|b|\n|-|-|\n|1|2|\n\n" + "|a" * 256 + "\n" + "|-" * 256 + "\n" + "|\n" * 255, HERE)
    assert (tables.count("<table>"), "<td>1</td>" in tables) == (1, True)


def test_too_long_text_is_shown_unrendered() -> None:
    html = render_markdown("<script>" + "a" * LONGEST_TEXT, HERE)
    assert html.startswith("<pre tabindex=0>&lt;script&gt;aaa")
