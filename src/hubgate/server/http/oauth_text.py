"""Text for `error_description` (RFC 6749, sections 4.1.2.1 and 5.2), which may echo input of the caller."""

import re

# Everything but printable ASCII without quote and backslash, which could end the text early in a header or a log.
_DISALLOWED = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")


def oauth_text(text: str) -> str:
    return _DISALLOWED.sub("?", text)
