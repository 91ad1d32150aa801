"""Splits names and texts into the tokens of a document. Pure; both engines store and compare tokens as they are.

A token without a mark is a word in a name or a beginning of it. `~` marks the rest of such a word from its second,
third, ... character on and beginnings of that, so that any part of a name is a token, or the beginning of one if it is
long. `.` marks a word of a text, `=` a whole name, `#` a tag, `k:` the kind of a document, `v:` and `o:` the visibility
and the owner. What is private has `p:` with its owner too, and a repo `i:` with its id and `c:` with the app or token
that created it.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from hashlib import sha256

PUBLIC = "v:public"
# Of a text: the characters that are read, and the words that are stored.
MAX_TEXT_LENGTH = 20_000
MAX_TEXT_WORDS = 400
# Longer words of texts, and of names and titles, are cut. No repo has a longer name.
MAX_WORD_LENGTH = 40
MAX_NAME_WORD_LENGTH = 96
MAX_QUERY_WORDS = 8
# The lengths of beginnings that are tokens, of words and of their rests. Engines find a token much faster than the
# beginnings of tokens. A shorter rest is in nearly every name.
BEGINNINGS = range(2, 17)
BEGINNINGS_OF_RESTS = range(3, 7)

_RUN = re.compile(r"[^\W_]+")
# Between a lower-case letter and a capital, and between letters and digits: "CodeLlama2" has three words.
_WITHIN_RUN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Scripts without spaces between words. Every two neighbouring characters form a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_IGNORED = re.compile(r"https?://[^\s)>\]\"']+|<[^<>]{0,500}>|&[a-z]{1,10};")


def words_of(text: str) -> list[str]:
    """The words of a text in order, without accents and differences of case."""
    if text.isascii():
        return _RUN.findall(text.lower())
    decomposed = unicodedata.normalize("NFKD", text)
    without_accents = "".join(char for char in decomposed if not unicodedata.combining(char))
    return [word for run in _RUN.findall(without_accents.casefold()) for word in _split_unspaced(run)]


def _split_unspaced(run: str) -> Iterable[str]:
    end = 0
    for part in _UNSPACED.finditer(run):
        if part.start() > end:
            yield run[end : part.start()]
        text = part[0]
        yield from (text[at : at + 2] for at in range(max(1, len(text) - 1)))
        end = part.end()
    if end < len(run):
        yield run[end:]


def name_tokens(*names: str) -> list[str]:
    """The tokens of names and titles. Any part of a word that has two characters or more begins one of them, and is one
    of them if its length is in BEGINNINGS, or in BEGINNINGS_OF_RESTS.
    """
    words = [word[:MAX_NAME_WORD_LENGTH] for name in names for word in words_of(name)]
    inner = [part.lower() for name in names for part in _WITHIN_RUN.findall(name[:MAX_TEXT_LENGTH])]
    rests = [word[at:] for word in words for at in range(1, len(word) - 1)]
    return [
        *words,
        *inner,
        *(word[:length] for word in (*words, *inner) for length in BEGINNINGS if length < len(word)),
        *(f"~{rest}" for rest in rests),
        *(f"~{rest[:length]}" for rest in rests for length in BEGINNINGS_OF_RESTS if length < len(rest)),
    ]


def exact_token(name: str) -> str:
    """The token of a whole name, which ignores what is between its words."""
    return f"={''.join(words_of(name))[:MAX_NAME_WORD_LENGTH]}"


def text_tokens(text: str) -> list[str]:
    """The tokens of the first words of a text, such as a README, without addresses and HTML tags."""
    words = words_of(_IGNORED.sub(" ", text[:MAX_TEXT_LENGTH]))
    return [f".{word[:MAX_WORD_LENGTH]}" for word in words]


def tag_token(tag: str) -> str:
    """The token of a tag, which may contain any character."""
    return f"#{_digest(tag)}"


def tag_tokens(tags: Iterable[str]) -> list[str]:
    """The tokens of tags and of the words in them."""
    return [token for tag in tags for token in (tag_token(tag), *text_tokens(tag))]


def kind_token(kind: str) -> str:
    return f"k:{kind}"


def owner_token(owner_id: str) -> str:
    return f"o:{owner_id}"


def private_token(owner_id: str) -> str:
    return f"p:{owner_id}"


def repo_token(repo_id: str) -> str:
    return f"i:{repo_id}"


def created_token(owner_id: str, client_id: str) -> str:
    """The token of an owner's repos that an app or a fine-grained token created. A client id may be a URL."""
    return f"c:{_digest(f'{owner_id} {client_id}')}"


def access_tokens(owner_id: str, *, private: bool, private_tokens: Iterable[str] = ()) -> str:
    """The tokens that decide who finds something of an owner; `private_tokens` only while it is private."""
    visible_to = [private_token(owner_id), *private_tokens] if private else [PUBLIC]
    return joined([*visible_to, owner_token(owner_id)])


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:20]


def joined(tokens: Sequence[str], limit: int | None = None) -> str:
    """Different tokens, separated by spaces."""
    return " ".join(list(dict.fromkeys(tokens))[:limit])
