"""Collections and their items, and the rules for titles and slugs."""

import re
import unicodedata

import msgspec

from hubgate.server.access import resource
from hubgate.server.errors import FieldErrors
from hubgate.server.hub.repos.model import Repo, RepoOwner
from hubgate.server.ids import is_id

THEMES = ("orange", "blue", "green", "purple", "pink", "indigo")
LONGEST_TITLE = 100
LONGEST_DESCRIPTION = 150
LONGEST_NOTE = 500
LONGEST_SLUG = 60
ID_LENGTH = 24
# Changing the order rewrites positions, so both counts are limited.
MAX_COLLECTIONS = 1_000
MAX_ITEMS = 1_000
COLLECTION_GONE = "The collection was deleted by another request."


class Collection(msgspec.Struct, frozen=True):
    """A collection's row. The order of the fields is that of `store.COLLECTION`."""

    id: str
    owner_kind: str
    owner_id: str
    owner_name: str
    owner_fullname: str
    title: str
    description: str
    theme: str
    private: int
    # Orders the collections of an owner. Not consecutive: deleting a collection leaves a gap.
    position: int
    created_at: int
    updated_at: int

    @property
    def slug(self) -> str:
        """`namespace/title-id`. Only the id identifies the collection, so a slug with an old title stays valid."""
        return f"{self.owner_name}/{self.last_segment}"

    @property
    def last_segment(self) -> str:
        """The slug without the namespace."""
        return f"{slugified(self.title)}-{self.id}".removeprefix("-")

    @property
    def path(self) -> str:
        """The path of the collection's page."""
        return f"/collections/{self.slug}"

    @property
    def owner(self) -> RepoOwner:
        return RepoOwner(self.owner_kind, self.owner_id, self.owner_name)

    def as_resource(self) -> resource.Collection:
        return resource.Collection(self.owner.namespace, private=bool(self.private))


class Item(msgspec.Struct, frozen=True):
    """An item that the caller may see: a repo or a collection, in its place among the items that the caller sees."""

    id: str
    note: str
    place: int
    # Without card and tags, which would make a thousand items too large.
    repo: Repo | None = None
    linked: Collection | None = None

    @property
    def type(self) -> str:
        return self.repo.type if self.repo else "collection"


class CollectionItems(msgspec.Struct, frozen=True):
    """A collection as the caller sees it, with its place among the owner's collections."""

    collection: Collection
    items: list[Item]
    # Not set in lists.
    place: int = 0


def slugified(title: str) -> str:
    """The title in lower-case ASCII letters and digits, separated by dashes."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", ascii_title))[:LONGEST_SLUG].strip("-")


def id_in_slug(segment: str) -> str | None:
    """The id at the end of a slug."""
    found = segment[-ID_LENGTH:]
    return found if is_id(found) else None


def title_key(title: str) -> str:
    """The key for comparing titles: an owner has one collection per title, regardless of case."""
    return title.casefold()


def search_text(title: str, description: str) -> str:
    return f"{title}\n{description}".casefold()


def check_title(text: str) -> str:
    title = " ".join(text.split())
    # Control and format characters are not displayed, so a title of only these would be empty.
    is_visible = any(unicodedata.category(character)[0] != "C" for character in title)
    if not is_visible or len(title) > LONGEST_TITLE:
        raise FieldErrors({"title": f"A title must have 1 to {LONGEST_TITLE} characters."})
    return title


def check_description(text: str) -> str:
    return _limited("description", text, LONGEST_DESCRIPTION)


def check_note(text: str) -> str:
    return _limited("note", text, LONGEST_NOTE)


def check_theme(theme: str) -> str:
    if theme not in THEMES:
        raise FieldErrors({"theme": f"theme must be one of {', '.join(THEMES)}."})
    return theme


def _limited(field: str, text: str, longest: int) -> str:
    stripped = text.strip()
    if len(stripped) > longest:
        raise FieldErrors({field: f"A {field} may have at most {longest} characters."})
    return stripped
