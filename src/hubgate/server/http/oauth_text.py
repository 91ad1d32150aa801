"""What may stand in `error_description` (RFC 6749, sections 4.1.2.1 and 5.2), which repeats what callers sent."""

import re

# Printable ASCII without the quote and the backslash, with which text would end early in a header or a log.
_NOT_SAYABLE = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")


def oauth_text(text: str) -> str:
    return _NOT_SAYABLE.sub("?", text)
