"""A stored picture, and its address."""

from urllib.parse import quote

from msgspec import Struct

# In pixels: for lists, and for everything else. Both twice as large as they are shown.
SMALL, LARGE = 64, 256
SIZES = (SMALL, LARGE)
MEDIA_TYPE = "image/webp"
# Of an upload.
MAX_BYTES = 1_000_000
FIELD = "picture"


class Picture(Struct, frozen=True):
    """A picture in all sizes. A new picture has a new id, which is part of its address: addresses are cached."""

    id: str
    small: bytes
    large: bytes


class PictureOwner(Struct, frozen=True):
    """The owner of a picture; exactly one of the fields is set."""

    user_id: str | None = None
    org_id: str | None = None
    client_id: str | None = None

    @property
    def id(self) -> str:
        return self.user_id or self.org_id or logo_id(self.client_id or "")


def logo_id(client_id: str) -> str:
    """The id under which the logo of an app is stored: a client ID may look like the id of an account."""
    return f"app-{client_id}"


def address_of(owner_id: str, picture_id: str, size: int = LARGE) -> str:
    return f"/avatars/{quote(owner_id, safe='')}/{picture_id}/{size}.webp"
