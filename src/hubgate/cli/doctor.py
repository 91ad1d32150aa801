"""Check configuration, database, clock, keys, permissions and public address. Exit 1 when something fails."""

import argparse
import asyncio

from msgspec.structs import asdict

from hubgate.cli import hub_settings
from hubgate.cli.output import print_json
from hubgate.server.doctor import Finding, examine
from hubgate.server.errors import StartupError


def configure(parser: argparse.ArgumentParser) -> None:
    hub_settings.add_to(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")


def run(options: argparse.Namespace) -> int:
    try:
        findings = asyncio.run(examine(hub_settings.read_for_operator(options)))
    except StartupError as error:
        findings = [Finding("configuration", "fail", str(error))]
    is_ok = all(finding.level != "fail" for finding in findings)
    if options.json:
        print_json({"ok": is_ok, "checks": [asdict(finding) for finding in findings]})
    else:
        print("\n".join(map(_line, findings)))
    return 0 if is_ok else 1


def _line(finding: Finding) -> str:
    sign = {"ok": "✓ ok  ", "warn": "! warn", "fail": "✕ fail"}[finding.level]
    return f"{sign} {finding.check}: {finding.text}"
