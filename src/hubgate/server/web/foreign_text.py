"""Names that others chose, made safe to look at: nothing that turns the text around or hides in it (attack O33)."""

import unicodedata

SHOWN = 60
# Joiners that scripts and emoji need are among the format characters too, but no name must have them to be read.
_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def shown(text: str) -> str:
    """For templates: `{{ user.fullname|shown }}`, inside <bdi>."""
    name = clean(text)
    return name if len(name) <= SHOWN else name[: SHOWN - 1] + "…"


def clean(text: str) -> str:
    """The same at full length, for sentences that hold such names."""
    return "".join(character for character in text if unicodedata.category(character) not in _HIDDEN)


def said(text: str) -> str:
    """A text of several lines, which keep their breaks."""
    return "\n".join(map(clean, text.splitlines()))
