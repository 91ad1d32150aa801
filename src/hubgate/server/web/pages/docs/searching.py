"""A search over the sections of all pages and the operations of the API: every word must occur in the heading, the
page's title or the text.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from hubgate.server.web.pages.docs.navigation import sections
from hubgate.server.web.pages.docs.rendering import render

MAX_RESULTS = 50
LONGEST_QUERY = 200
_MAX_WORDS = 8
_EXCERPT = 180
_WORD = re.compile(r"[\w./:-]*\w")


class DocMatch(Struct, frozen=True):
    address: str
    page: str
    heading: str
    # The text around the first word: before it, the word, after it.
    before: str
    word: str
    after: str


class Entry(Struct, frozen=True):
    address: str
    page: str
    heading: str
    text: str
    lower: str


@lru_cache(maxsize=8)
def section_entries(base_url: str) -> tuple[Entry, ...]:
    """All sections of all pages."""
    found = []
    for section in sections():
        for link in section.pages:
            if not link.name:
                found.append(entry(link.address, link.title, "", link.summary))
                continue
            for part in render(link.group, link.name, base_url).texts:
                is_title = part.heading.level == 1
                address = link.address if is_title else f"{link.address}#{part.heading.anchor}"
                found.append(entry(address, link.title, "" if is_title else part.heading.text, part.text))
    return tuple(found)


def entry(address: str, page: str, heading: str, text: str) -> Entry:
    return Entry(address, page, heading, text, f"{page} {heading} {text}".lower())


def find(query: str, entries: Iterable[Entry]) -> list[DocMatch]:
    """The entries that contain all words, those with the words in their titles first."""
    words = [word.lower() for word in _WORD.findall(query[:LONGEST_QUERY])][:_MAX_WORDS]
    if not words:
        return []
    matches = [entry for entry in entries if all(word in entry.lower for word in words)]
    matches.sort(key=lambda entry: -_score(entry, words))
    return [_match(entry, words) for entry in matches[:MAX_RESULTS]]


def _score(entry: Entry, words: list[str]) -> int:
    heading, page, text = entry.heading.lower(), entry.page.lower(), entry.text.lower()
    return sum(8 * (word in heading) + 5 * (word in page) + min(text.count(word), 3) for word in words)


def _match(entry: Entry, words: list[str]) -> DocMatch:
    text, lower = entry.text, entry.text.lower()
    places = [(place, word) for word in words if (place := lower.find(word)) >= 0]
    # Lower case can be longer than the text for a few letters, and the excerpt would be shifted.
    if not places or len(lower) != len(text):
        return DocMatch(entry.address, entry.page, entry.heading, text[:_EXCERPT], "", "")
    place, word = min(places)
    start = 0 if place < _EXCERPT // 3 else text.find(" ", place - _EXCERPT // 3) + 1 or place
    start, end = min(start, place), place + len(word)
    before = ("… " if start else "") + text[start:place]
    after = text[end : start + _EXCERPT].rpartition(" ")[0] if len(text) > start + _EXCERPT else text[end:]
    return DocMatch(entry.address, entry.page, entry.heading, before, text[place:end], after)
