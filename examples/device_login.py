"""A command-line tool that signs its user in without a browser of its own (RFC 8628).

device_login.py login | whoami | logout
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

HUB, CLIENT_ID = os.environ["HUB"], os.environ["CLIENT_ID"]
STORED = Path(os.environ.get("TOKEN_FILE", "~/.config/device-login/token")).expanduser()
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def call(path: str, form: dict[str, str] | None = None, token: str = "") -> dict[str, Any]:
    """GET, or POST with a form. An error of the hub is returned like any other answer."""
    data = None if form is None else urlencode(form).encode()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urlopen(Request(HUB + path, data, headers), timeout=30) as response:
            return json.loads(response.read() or b"{}")
    except HTTPError as error:
        return json.load(error)


def login() -> str | None:
    started = call("/oauth/device", {"client_id": CLIENT_ID, "scope": "openid profile"})
    if "error" in started:
        return started["error_description"]
    print(f"Open {started['verification_uri_complete']}\nand check that it shows {started['user_code']}", flush=True)
    wait = started["interval"]
    form = {"grant_type": GRANT, "client_id": CLIENT_ID, "device_code": started["device_code"]}
    while True:
        answer = call("/oauth/token", form)
        match answer.get("error"):
            case None:
                store(answer["access_token"])
                return whoami()
            case "authorization_pending":
                pass
            case "slow_down":
                wait += 5
            case _:
                return answer["error_description"]
        time.sleep(wait)


def store(token: str) -> None:
    STORED.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Created with its mode: nobody else can open it in between.
    with os.fdopen(os.open(STORED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(token)


def whoami() -> str | None:
    if not STORED.exists():
        return "Not signed in. Run: device_login.py login"
    user = call("/oauth/userinfo", token=STORED.read_text())
    if "error" in user:
        return "The sign-in has expired or was revoked. Run: device_login.py login"
    print(f"Signed in as {user['preferred_username']}")
    return None


def logout() -> str | None:
    if STORED.exists():
        call("/oauth/revoke", {"client_id": CLIENT_ID, "token": STORED.read_text()})
        STORED.unlink()
    return None


if __name__ == "__main__":
    commands = {"login": login, "whoami": whoami, "logout": logout}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(f"usage: device_login.py {' | '.join(commands)}")
    # A text is an error: it is printed, and the exit status is 1.
    sys.exit(commands[sys.argv[1]]())
