"""How `hubgate login` shows a sign-in: the address and the code, a QR code, and a browser where there is one."""

import os
import shutil
import sys
import webbrowser
from collections.abc import Mapping
from typing import TextIO

from hubgate.cli.user import qr
from hubgate.client.addresses import checked_url
from hubgate.client.errors import UnexpectedResponse
from hubgate.client.models import DeviceCode
from hubgate.client.responses import sanitized


def show(code: DeviceCode, output: TextIO) -> None:
    minutes = max(code.expires_in // 60, 1)
    address, user_code = sanitized(code.verification_uri), sanitized(code.user_code, 40)
    print(f"Open {address} and enter  {user_code}  ({minutes} min)", file=output)
    link = _link(code)
    if link and output.isatty() and (matrix := qr.modules(link)) and _has_room(len(matrix), output):
        print(qr.drawn(matrix, colour=not os.environ.get("NO_COLOR")), file=output)
    output.flush()
    if sys.stderr.isatty():
        print("Waiting for you to approve…", file=sys.stderr, flush=True)
    if link and output.isatty() and has_browser(os.environ):
        _open(link)


def _link(code: DeviceCode) -> str:
    """The address that contains the code, if it is safe to pass to another program."""
    try:
        return checked_url(code.verification_uri_complete)
    except UnexpectedResponse:
        return ""


def _has_room(size: int, output: TextIO) -> bool:
    """Whether the terminal shows block characters, and the whole code."""
    columns, lines = shutil.get_terminal_size()
    is_capable = (output.encoding or "").lower().replace("-", "") == "utf8" and os.environ.get("TERM") != "dumb"
    return is_capable and columns >= size + 4 and lines >= size // 2 + 6


def has_browser(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a browser can open beside this terminal: not on another machine over SSH, not without a display."""
    if environment.get("BROWSER"):
        return True
    if environment.get("SSH_CONNECTION") or environment.get("SSH_TTY"):
        return False
    return platform in ("darwin", "win32") or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def _open(link: str) -> None:
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    # Such a browser (lynx, w3m) would take over the terminal, unless the user has chosen it.
    if type(browser) is webbrowser.GenericBrowser and not os.environ.get("BROWSER"):
        return
    browser.open(link)
