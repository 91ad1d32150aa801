"""Pictures to upload, and hostile files that look like pictures."""

import io
import zlib

from PIL import Image

PNG_END = b"\0\0\0\0IEND\xaeB`\x82"


def picture(kind: str = "PNG", size: tuple[int, int] = (300, 200), mode: str = "RGB", **options: object) -> bytes:
    """A picture whose left half is red and whose right half is blue."""
    drawn = Image.new("RGB", size, "red")
    drawn.paste("blue", (size[0] // 2, 0, *size))
    target = io.BytesIO()
    drawn.convert(mode).save(target, kind, **options)
    return target.getvalue()


def photo_with_location() -> bytes:
    """A JPEG that is stored turned, with EXIF data, a comment and a colour profile."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "private note"
    exif.get_ifd(0x8825)[1] = "N"
    return picture("JPEG", exif=exif.tobytes(), comment=b"private note", icc_profile=b"private note")


def bomb(width: int = 50_000, height: int = 50_000) -> bytes:
    """A PNG of a few kilobytes that declares billions of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x06\0\0\0"
    rows = zlib.compress(b"\0" * 3_000_000, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + PNG_END


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))
