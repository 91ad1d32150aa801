"""Words of names and texts, and the tokens that searches compare."""

from hypothesis import given
from hypothesis import strategies as st

from hubgate.server.search.words import (
    BEGINNINGS,
    BEGINNINGS_OF_RESTS,
    exact_token,
    name_tokens,
    tag_tokens,
    text_tokens,
    words_of,
)

NAMES = st.text(alphabet="abcXYZ019-_.", min_size=1, max_size=40)


def test_words_ignore_case_accents_and_punctuation() -> None:
    assert words_of("Über_cool: BERT-base, v2.0!") == ["uber", "cool", "bert", "base", "v2", "0"]
    assert words_of("...") == []


def test_scripts_without_spaces_are_split_into_pairs() -> None:
    assert words_of("BERTの日本語版") == ["bert", "の日", "日本", "本語", "語版"]
    assert words_of("猫 x") == ["猫", "x"]


def test_names_are_split_at_capitals_and_digits() -> None:
    assert {"codellama2", "code", "llama", "2", "13b", "13", "b"} <= set(name_tokens("CodeLlama2-13b"))
    assert exact_token("Code-Llama_2") == exact_token("codellama2") == "=codellama2"


@given(NAMES, st.data())
def test_every_part_of_a_word_begins_a_token(name: str, data: st.DataObject) -> None:
    tokens = name_tokens(name)
    for word in words_of(name):
        if len(word) > 1:
            start = data.draw(st.integers(0, len(word) - 2))
            part = word[start : data.draw(st.integers(start + 2, len(word)))]
            assert any(token.startswith((part, f"~{part}")) for token in tokens)
            assert start > 0 or part in tokens or len(part) not in BEGINNINGS
            assert start == 0 or f"~{part}" in tokens or len(part) not in BEGINNINGS_OF_RESTS


@given(st.text(max_size=300))
def test_tokens_are_safe_in_queries(text: str) -> None:
    """A token has no character that an engine's query language would interpret."""
    for token in [*name_tokens(text), *text_tokens(text), exact_token(text), *tag_tokens([text])]:
        marked = token[1:] if token[:1] in "~.=#" else token
        assert marked.isalnum() or token == "=", token


def test_texts_are_read_without_addresses_and_markup() -> None:
    text = 'See <a href="x">this</a> at https://example.org/path?q=1 &amp; [more](http://x.y/z) here'
    assert text_tokens(text) == [".see", ".this", ".at", ".more", ".here"]
    assert len(text_tokens("word " * 10_000)) == 4_000
    assert text_tokens("x" * 50) == ["." + "x" * 40]
