"""`python -m bench [--quick] [--dir FOLDER] [--json FILE] [SUBJECT ...]`: run benchmarks and print tables of ratios."""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import (
    exchange,
    fairness,
    http_requests,
    large_files,
    oauth,
    postgres_batches,
    postgres_lookups,
    postgres_writes,
    provider_peers,
    providers,
    repos,
    search,
    spaces,
    sqlite_lookups,
    sqlite_writes,
    webhook_listeners,
    webhook_peers,
    webhooks,
    whoami,
)
from bench.harness import Budget, Table
from bench.workspace import Workspace, open_workspace

SUBJECTS: dict[str, Callable[[Workspace], Iterable[Table]]] = {
    "sqlite-writes": sqlite_writes.measure,
    "sqlite-lookups": sqlite_lookups.measure,
    "postgres-writes": postgres_writes.measure,
    "postgres-batches": postgres_batches.measure,
    "postgres-lookups": postgres_lookups.measure,
    "fairness": fairness.measure,
    "http": http_requests.measure,
    "whoami": whoami.measure,
    "oauth": oauth.measure,
    "exchange": exchange.measure,
    "providers": providers.measure,
    "repos": repos.measure,
    "large-files": large_files.measure,
    "search": search.measure,
    "webhooks": webhooks.measure,
    "listeners": webhook_listeners.measure,
    "spaces": spaces.measure,
}
ON_POSTGRES = ("postgres", "whoami", "oauth", "exchange", "providers", "repos", "search", "webhooks", "listeners")
FULL = Budget(rounds=5, scale=1.0)
QUICK = Budget(rounds=3, scale=0.1)


def main() -> None:
    options = _options()
    started = time.monotonic()
    with open_workspace(options.dir, QUICK if options.quick else FULL) as workspace:
        facts = workspace.facts()
        if any(name.startswith(ON_POSTGRES) for name in options.subjects):
            facts |= workspace.postgres_facts()
        if {"repos", "large-files"} & set(options.subjects):
            facts |= repos.facts()
        if "providers" in options.subjects:
            facts |= provider_peers.facts()
        if "webhooks" in options.subjects:
            facts |= webhook_peers.facts()
        for name, value in facts.items():
            print(f"{name:<18} {value}")
        tables: list[Table] = []
        for name in options.subjects:
            for found in SUBJECTS[name](workspace):
                print(f"\n{found.text()}", flush=True)
                tables.append(found)
    print("\n* the baseline. ratio: of the medians. in rounds: the smallest and largest ratio within one round.")
    print(f"{time.monotonic() - started:.0f} s")
    if options.json:
        saved = {"facts": facts, "tables": [found.data() for found in tables]}
        options.json.write_text(json.dumps(saved, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Run benchmarks and print tables of ratios.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"any of {', '.join(SUBJECTS)}; all by default")
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter rounds: three or four minutes; do not quote the figures"
    )
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"), help="folder for databases, on a real disk")
    parser.add_argument("--json", type=Path, help="also save facts, medians and every round here")
    options = parser.parse_args()
    unknown = [name for name in options.subjects if name not in SUBJECTS]
    if unknown:
        parser.error(f"unknown subject {unknown[0]}; choose from {', '.join(SUBJECTS)}")
    options.subjects = options.subjects or list(SUBJECTS)
    needed = {
        "providers": provider_peers.missing,
        "repos": repos.missing,
        "large-files": repos.missing,
        "webhooks": webhook_peers.missing,
    }
    for subject, missing in needed.items():
        if subject in options.subjects and (line := missing()):
            parser.error(line)
    return options


if __name__ == "__main__":
    main()
