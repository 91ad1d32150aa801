"""The text of a file in a form. Browsers send every line break as CR LF, so the file's own are restored."""

import re

from msgspec import Struct

# Longer texts are awkward to edit in a form. Also the limit of texts that pages show.
LARGEST_TEXT = 256 * 1024

_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_BOM = "\ufeff"


class EditableText(Struct, frozen=True):
    """A file's text with LF as line breaks, and how the file writes it."""

    text: str = ""
    line_break: str = "\n"
    has_bom: bool = False
    # The file has several kinds of line breaks; all become `line_break`.
    is_mixed: bool = False

    def file_content(self, submitted: str) -> bytes:
        """The content of the file with the text of a form."""
        text = with_lf(submitted).replace("\n", self.line_break)
        return ((_BOM if self.has_bom else "") + text).encode()


def read_text(content: bytes) -> EditableText | None:
    """The text of a file; None if the file is not UTF-8 text."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text:
        return None
    breaks = _LINE_BREAK.findall(text)
    # CR alone is no line break for git.
    line_break = "\r\n" if breaks.count("\r\n") > len(breaks) / 2 else "\n"
    is_mixed = any(found != line_break for found in breaks)
    return EditableText(with_lf(text.removeprefix(_BOM)), line_break, text.startswith(_BOM), is_mixed)


def with_lf(text: str) -> str:
    return _LINE_BREAK.sub("\n", text)
