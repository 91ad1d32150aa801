"""Names of browsers by their user agent."""

import pytest

from hubgate.server.web.pages.settings.sessions import describe_browser

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {WEBKIT} Chrome/139.0.0.0 Safari/537.36", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {WEBKIT} Chrome/139.0 Safari/537.36 Edg/139.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT} Chrome/139.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Version/18.5 Safari/605.1.15", "Safari on macOS"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1", "Safari on iPhone"),
        ("Mozilla/5.0 (X11; Linux x86_64) Something/1.0", "A browser on Linux"),
        ("curl/8.14.1", "curl"),
        ("python-httpx/0.28.1", "python-httpx"),
        ("<b>x", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_browser_is_named(user_agent: str, words: str) -> None:
    assert describe_browser(user_agent) == words
