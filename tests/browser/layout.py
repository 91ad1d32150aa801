"""Where the lines of a page break and what its tables cut off, measured in the page as it is shown now."""

from typing import Any

from playwright.sync_api import Page

# A column that shows a name has room for a word of this length; longer words may break as a last resort.
WORD = 12

_BROKEN_WORDS = """longest => {
    const lines = range => {
        let count = 0, bottom = -Infinity;
        // Characters of several fonts or directions have several boxes on one line.
        const boxes = [...range.getClientRects()].filter(box => box.width).sort((a, b) => a.top - b.top);
        for (const box of boxes) {
            if (box.top >= bottom - 2) count += 1;
            bottom = Math.max(bottom, box.bottom);
        }
        return count;
    };
    const broken = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        // A <wbr> divides its text into nodes.
        const node = texts.currentNode;
        if (!node.parentElement.closest("bdi, .scope") || node.parentElement.closest(".unseen, pre")) continue;
        for (const { 0: word, index } of node.data.matchAll(/[^\\s-]+-*|-+/g)) {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            const email = /[^@]@./.test(word);
            if ((email || word.length <= longest) && lines(range) > 1) broken.push(word);
        }
    }
    return broken;
}"""

_CUT_TABLES = """regions => regions
    .filter(region => region.scrollWidth > region.clientWidth)
    .map(region => `${region.getAttribute("aria-label")}: ${region.scrollWidth - region.clientWidth} px`)
"""

_VISIBLE_TEXTS = """found => found.filter(element => {
    element.scrollIntoView({ block: "center" });
    const { left, right, top, bottom, width } = element.getBoundingClientRect();
    const region = element.closest(".table").getBoundingClientRect();
    const inside = left >= Math.max(region.left, 0) && right <= Math.min(region.right, innerWidth);
    return width > 0 && inside && document.elementFromPoint((left + right) / 2, (top + bottom) / 2) === element;
}).map(element => element.textContent)"""


def broken_words(page: Page) -> Any:
    """The words of names, and the parts of e-mail addresses, that are divided between two lines."""
    return page.evaluate(_BROKEN_WORDS, WORD)


def cut_tables(page: Page) -> Any:
    """The tables that have to be scrolled sideways, except those that a user wrote."""
    return page.locator(".table:not(.prose .table)").evaluate_all(_CUT_TABLES)


def visible_texts(page: Page, selector: str) -> Any:
    """The texts of those elements of a table that are entirely visible after vertical scrolling."""
    return page.locator(selector).evaluate_all(_VISIBLE_TEXTS)
