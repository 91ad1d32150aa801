"""The card of a repo: the front matter of its README, and the tags derived from it.

The YAML is not trusted. The loader creates plain values only, from a limited amount of text. Invalid front matter
results in an empty card, since it must not fail a push.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml

from hubgate.server.hub.git import objects
from hubgate.server.hub.git.threads import in_card_thread
from hubgate.server.hub.repos.model import NO_CARD, Card, RepoType
from hubgate.server.jobs.job import checkpoint
from hubgate.server.search.words import text_tokens

README = "README.md"
MAX_FRONT_MATTER_LENGTH = 64 * 1024
MAX_NODES = 5_000
MAX_DEPTH = 50
# Parts of a number in base 60, such as 1:59:59.
MAX_NUMBER_PARTS = 20
MAX_TAGS = 200
MAX_TAG_LENGTH = 100

# Empty lines may precede the front matter, as in existing clients.
_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_PREFIXED_FIELDS = {"license": "license", "datasets": "dataset", "base_model": "base_model"}
_DESCRIPTIONS = ("title", "pretty_name", "description", "short_description")
_PLAIN_FIELDS = ("tags", "language", "library_name", "pipeline_tag")
# Existing clients search models by the bare value and datasets by field and value.
_DATASET_FIELDS = (
    "language",
    "task_categories",
    "task_ids",
    "size_categories",
    "multilinguality",
    "language_creators",
    "annotations_creators",
    "source_datasets",
)


# Most commits do not change the README. Parsed values take several times the bytes of the text.
_SIZE_IN_MEMORY = 8
_CARDS: objects.SizedCache[tuple[str, str, str], Card] = objects.SizedCache(
    max_bytes=8 * 1024 * 1024, max_entry_bytes=256 * 1024
)


class BadFrontMatter(ValueError):
    """Invalid front matter. The message explains the problem to the author."""


async def card_at(folder: Path, commit: str | None, repo_type: str) -> Card:
    if commit is None:
        return NO_CARD
    entry, content = await objects.file_at(folder, commit, README)
    if entry is None or entry.pointer or content is None:
        return NO_CARD
    # Of this repo: somebody could construct two files with the same id, but not for a repo of others.
    key = (str(folder), entry.sha, repo_type)
    card = _CARDS.get(key)
    if card is None:
        card = await in_card_thread(card_of, content.decode(errors="replace"), repo_type)
        _CARDS.add(key, card, _SIZE_IN_MEMORY * len(content))
    return card


def card_of(readme: str, repo_type: str) -> Card:
    front_matter, text = split_readme(readme)
    try:
        data = parse_front_matter(front_matter) if front_matter is not None else {}
    except BadFrontMatter:
        data = {}
    described = [data[field] for field in _DESCRIPTIONS if isinstance(data.get(field), str)]
    words = [word for part in (*described, text) for word in text_tokens(part)]
    return Card(data, list(dict.fromkeys(_tags(data, repo_type)))[:MAX_TAGS], words)


def split_readme(readme: str) -> tuple[str | None, str]:
    """Split a README into its front matter, or None, and the rest."""
    match = _FRONT_MATTER.match(readme.removeprefix("\ufeff"))
    return (match[1], readme.removeprefix("\ufeff")[match.end() :]) if match else (None, readme)


def parse_front_matter(front_matter: str) -> dict[str, Any]:
    if len(front_matter) > MAX_FRONT_MATTER_LENGTH:
        raise BadFrontMatter(f"The front matter has more than {MAX_FRONT_MATTER_LENGTH:,} characters.")
    try:
        data = _Loader(front_matter).get_single_data()
    # The library's constructors raise various exceptions on odd values: `!!int ""`, `!!bool x`, `!!timestamp x`.
    except Exception as error:
        where = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = f" in line {where.line + 2}" if where else ""
        raise BadFrontMatter(f"The front matter is not valid YAML{line}: {_cleaned(problem)[:300]}.") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BadFrontMatter("The front matter does not map names to values.")
    plain: dict[str, Any] = _to_json_value(data)
    return plain


_TOO_DEEP = f"it is nested more than {MAX_DEPTH} levels deep"


class _Loader(yaml.SafeLoader):
    """YAML loader for untrusted text. It limits nodes and rejects aliases, since a few lines of aliases expand to a
    billion values, and rejects anything that takes the library more than linear time.
    """

    _nodes = 0
    _depth = 0

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 -- the library's name
        # The scanner visits all open collections at every token, long before `compose_node` counts a node.
        if self.flow_level >= MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        super().fetch_flow_collection_start(TokenClass)

    def fetch_more_tokens(self) -> Any:
        checkpoint()
        return super().fetch_more_tokens()

    def fetch_directive(self) -> None:
        # A %TAG directive could expand each tag to any length.
        raise ValueError("it uses a directive (%)")

    def construct_yaml_int(self, node: Any) -> int:
        if str(node.value).count(":") > MAX_NUMBER_PARTS:
            raise ValueError("it has a number with too many parts")
        return int(super().construct_yaml_int(node))

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ValueError(f"it has more than {MAX_NODES:,} values")
        if self.check_event(yaml.AliasEvent):
            raise ValueError("it uses an alias (*name)")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _to_json_value(value: Any) -> Any:
    """Convert a value to one that JSON can represent."""
    if isinstance(value, dict):
        return {_cleaned(_limited_text(name)): _to_json_value(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_to_json_value(inner) for inner in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, str):
        return _cleaned(value)
    return _limited_text(value) if isinstance(value, int) and abs(value) >= 1 << 63 else value


def _cleaned(text: str) -> str:
    """Text without NUL and lone surrogates, which YAML can represent and databases and JSON cannot."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _limited_text(value: Any) -> str:
    """The text of a value. An integer with more digits than Python converts becomes the start of its hex form."""
    try:
        return str(value)
    except ValueError:
        return hex(value)[:MAX_TAG_LENGTH]


def _tags(data: Mapping[str, Any], repo_type: str) -> Iterable[str]:
    of_dataset = _DATASET_FIELDS if repo_type == RepoType.DATASET.value else ()
    for field in _PLAIN_FIELDS:
        if field not in of_dataset:
            yield from _tag_values(data.get(field))
    for field, prefix in {**_PREFIXED_FIELDS, **{field: field for field in of_dataset}}.items():
        yield from (f"{prefix}:{word}" for word in _tag_values(data.get(field)))


def _tag_values(value: Any) -> Iterable[str]:
    for word in value if isinstance(value, list) else [value]:
        if isinstance(word, str) and 0 < len(word) <= MAX_TAG_LENGTH:
            yield word
