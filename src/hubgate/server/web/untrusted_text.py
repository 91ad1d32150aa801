"""Text chosen by other users, displayed without bidirectional or invisible characters (attack O33)."""

import re
import unicodedata

LONGEST_SHOWN = 60
# Format characters include the joiners of some scripts and emoji, but names stay readable without them.
_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def display_name(text: str) -> str:
    """Remove hidden characters and shorten a name. Template filter: `{{ user.fullname|display_name }}` in <bdi>."""
    name = clean(text)
    return name if len(name) <= LONGEST_SHOWN else name[: LONGEST_SHOWN - 1] + "…"


def clean(text: str) -> str:
    """Remove hidden characters without shortening, for sentences that contain such names."""
    return "".join(character for character in text if unicodedata.category(character) not in _HIDDEN)


def clean_lines(text: str) -> str:
    """Remove hidden characters and preserve line breaks."""
    return "\n".join(map(clean, text.splitlines()))


# Colours and cursor movements.
_TERMINAL_CODES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")


def plain_text(line: str) -> str:
    """Remove the control sequences of terminals from a line of a log, then hidden characters."""
    return clean(_TERMINAL_CODES.sub("", line))
