"""Code blocks marked `run` in the documentation are run: commands in one shell, Python and JavaScript in one program
each, against a hub with the reader's data folder.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.bed.node import NODE
from tests.bed.people import create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.docs.site import ROOT

BIN = Path(sys.executable).parent
SECRETS = ("s3cret-value", "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode())


def blocks(page: str, language: str) -> str:
    """All blocks of a page that are marked `run`, one after another."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return "\n".join(re.findall(rf"^```{language} run\b[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))


def run(argv: list[str | Path], folder: Path, **variables: str) -> str:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), **variables}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_quick_start(sqlite_hub: RunningHub, tmp_path_factory: pytest.TempPathFactory) -> None:
    # A backup cannot be written into the hub's data folder.
    folder = tmp_path_factory.mktemp("reader")
    script = "set -euo pipefail\n" + blocks("quick-start", "sh")
    assert script.count("hubgate ") >= 8
    given = {f"HUBGATE_{name.upper()}": value for name, value in sqlite_hub.settings.raw.items() if value}
    said = run(["bash", "-c", script], folder, hub=sqlite_hub.url, **given)
    assert '"name":"ada"' in said
    assert (folder / "copy/config.json").read_text() == '{"layers": 2}\n'
    assert (folder / "hub.tar").is_file()


@pytest.fixture
def token(sqlite_hub: RunningHub) -> str:
    return create_token(sqlite_hub, create_user(sqlite_hub, "ada"), "write")


def test_walk_with_curl(sqlite_hub: RunningHub, token: str, tmp_path: Path) -> None:
    script = "set -euo pipefail\n" + blocks("api-walk", "sh")
    said = run(["bash", "-c", script], tmp_path, hub=sqlite_hub.url, TOKEN=token)
    assert '"name":"ada/walk-curl"' in said
    assert '{"layers": 2}' in said


def test_walk_with_python(sqlite_hub: RunningHub, token: str, tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(blocks("api-walk", "python").replace("$hub", sqlite_hub.url))
    said = run([sys.executable, "walk.py"], tmp_path, TOKEN=token)
    assert f"{sqlite_hub.url}/ada/walk-python/commit/" in said


def test_walk_with_javascript(sqlite_hub: RunningHub, token: str, tmp_path: Path) -> None:
    (tmp_path / "walk.mjs").write_text(blocks("api-walk", "javascript").replace("$hub", sqlite_hub.url))
    said = run([NODE, "walk.mjs"], tmp_path, TOKEN=token)
    assert f"{sqlite_hub.url}/ada/walk-javascript/commit/" in said


def deliveries() -> list[tuple[str, dict[str, str], str, bool]]:
    """Secret, headers, body, and whether the delivery is authentic."""
    cases = []
    body, now = '{"text": "é"}', int(time.time())
    for secret in SECRETS:
        key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
        for age, is_intact, before in (
            (0, True, ""),
            (0, True, "v1a,zzzz v1,AAAA "),
            (0, False, ""),
            (400, True, ""),
            (-400, True, ""),
        ):
            signed = f"id.{now - age}.{body}".encode()
            signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
            headers = {"webhook-id": "id", "webhook-timestamp": str(now - age)}
            headers["webhook-signature"] = f"{before}v1,{signature}"
            cases.append((secret, headers, body if is_intact else body + " ", is_intact and age == 0))
        cases.append((secret, {}, body, False))
    return cases


def test_verification_in_python(tmp_path: Path) -> None:
    program = blocks("verify-deliveries", "python") + (
        "\nimport json, sys\n"
        "print(json.dumps([is_authentic(s, h, b.encode()) for s, h, b, _ in json.load(open('cases.json'))]))"
    )
    (tmp_path / "cases.json").write_text(json.dumps(deliveries()))
    said = run([sys.executable, "-c", program], tmp_path)
    assert json.loads(said) == [is_authentic for *_, is_authentic in deliveries()]


def test_verification_in_javascript(tmp_path: Path) -> None:
    program = blocks("verify-deliveries", "javascript") + (
        '\nimport { readFileSync } from "node:fs";\n'
        'const cases = JSON.parse(readFileSync("cases.json"));\n'
        "console.log(JSON.stringify(cases.map(([s, h, b]) => isAuthentic(s, h, Buffer.from(b)))));"
    )
    (tmp_path / "cases.json").write_text(json.dumps(deliveries()))
    (tmp_path / "verify.mjs").write_text(program)
    said = run([NODE, "verify.mjs"], tmp_path)
    assert json.loads(said) == [is_authentic for *_, is_authentic in deliveries()]
