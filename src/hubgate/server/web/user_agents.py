"""A browser in words, such as "Firefox on Linux". A guess for display; nothing is decided by it."""

import re

# The first match wins: nearly every browser also claims to be others.
_BROWSERS = (
    ("Edge", r"Edg(?:e|A|iOS)?/"),
    ("Opera", r"OPR/|Opera"),
    ("Samsung Internet", r"SamsungBrowser/"),
    ("Firefox", r"Firefox/|FxiOS/"),
    ("Chrome", r"Chrome/|CriOS/"),
    ("Safari", r"Version/[\d.]+.*Safari/"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("ChromeOS", "CrOS"),
    ("macOS", "Macintosh|Mac OS X"),
    ("Linux", "Linux"),
)
_PRODUCT = re.compile(r"[A-Za-z][\w.-]{0,40}")


def in_words(user_agent: str) -> str:
    browser, system = _first(_BROWSERS, user_agent), _first(_SYSTEMS, user_agent)
    if browser and system:
        return f"{browser} on {system}"
    if browser or system:
        return browser or f"A browser on {system}"
    product = _PRODUCT.match(user_agent)
    return product.group() if product else "Unknown browser"


def _first(known: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((name for name, pattern in known if re.search(pattern, user_agent)), "")
