"""Writes the pages of `docs/reference` that are generated from the code: `python -m tests.docs.reference`, or `make
contract`. A test compares them with the code.
"""

import argparse
import importlib
import json
from collections.abc import Iterator
from pathlib import Path

from hubgate.cli.commands import COMMANDS, Command
from hubgate.server.events.kinds import Kind
from hubgate.server.scopes import BUILT_IN_SCOPES, IDENTITY_SCOPES, IGNORED_SCOPES, Risk
from hubgate.server.settings import OPTIONS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
_PAYLOADS = ROOT / "contract" / "events"
_GENERATED = "Generated from the code by `make contract`.\n"
# Flags of every command of the server.
_SETTINGS = {"--config", *(f"--{item.name.replace('_', '-')}" for item in OPTIONS)}


def pages() -> dict[str, str]:
    """The text of each generated page, by file name."""
    return {"commands.md": commands(), "events.md": events(), "scopes.md": scopes()}


def scopes() -> str:
    lines = ["# Scopes", "", _GENERATED]
    lines += [
        "An app requests scopes in the authorization request, and users choose among them on the consent page.",
        "A request that needs another scope gets 403, with the scope to request in `WWW-Authenticate`",
        "([errors](errors.md#when-an-access-token-is-rejected)).",
        "",
    ]
    for risk in Risk:
        lines += [f"## {risk.value}", "", "| scope | allows the app to |", "|---|---|"]
        lines += [f"| `{scope.name}` | {scope.text} |" for scope in BUILT_IN_SCOPES if scope.risk is risk] + [""]
    lines += [
        "## Rules",
        "",
        f"{_names(IDENTITY_SCOPES)} identify the user. They cannot be unticked, do not apply to organizations, and",
        "are the only scopes of this list that a token for [another server](../protect.md) can have.",
        "",
        f"{_names(IGNORED_SCOPES)} are accepted and ignored.",
        "",
        "The operator can define further scopes with `[[extra_scopes]]` in `hubgate.toml` ([settings]",
        "(../settings.md)), and resource servers have scopes of their own. A token of an organization's app is",
        "restricted to the organization ([token exchange](../token-exchange.md#what-the-token-can-access)).",
        "",
    ]
    return "\n".join(lines)


def _names(scopes: frozenset[str]) -> str:
    *first, last = (f"`{name}`" for name in sorted(scopes))
    return f"{', '.join(first)} and {last}"


def events() -> str:
    lines = [
        "# Events and example payloads",
        "",
        _GENERATED,
        "All fields with their meaning are at [/docs/webhooks](/docs/webhooks#events), JSON Schemas at",
        "`$hub/api/event-schemas`. Each example is a payload that a test recorded from a running hub. New fields may",
        "be added: ignore fields that you do not know.",
        "",
        "| scope | action | sent when | domain |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{kind.scope}` | `{kind.action}` | {kind.when} | `{kind.domain}` |" for kind in Kind]
    for kind in Kind:
        lines += ["", f"## {kind.scope} {kind.action}", "", f"Sent when {kind.when}."]
        for path in sorted(_PAYLOADS.glob(f"{kind.full_name}*.json"))[:1]:
            payload = json.dumps(json.loads(path.read_text()), indent=2, ensure_ascii=False)
            lines += ["", "```json", payload, "```"]
    return "\n".join([*lines, ""])


def commands() -> str:
    lines = [
        "# Commands",
        "",
        _GENERATED,
        "`hubgate COMMAND --help` prints the same. Commands for users are in the package without extras; those of the",
        "server need `hubgate[server]` and accept every [setting](../settings.md) as a flag, such as `--data-dir`, and",
        "`--config FILE`.",
        "Exit status: 0, 1 (error), 2 (usage) or 130 (Ctrl-C).",
        "",
        "| command | |",
        "|---|---|",
    ]
    lines += [f"| [`hubgate {one.name}`](#hubgate-{one.name}) | {one.help} |" for one in COMMANDS] + [""]
    for command in COMMANDS:
        lines += _command(command)
    return "\n".join(lines)


def parser_of(command: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"hubgate {command.name}")
    getattr(importlib.import_module(command.module), command.configure)(parser)
    return parser


def _command(command: Command) -> Iterator[str]:
    yield f"## hubgate {command.name}"
    yield ""
    yield f"{command.help[0].upper()}{command.help[1:]}."
    yield ""
    yield from _arguments(parser_of(command), is_server=command.needs_server)


def _arguments(parser: argparse.ArgumentParser, *, is_server: bool) -> Iterator[str]:
    rows = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                yield f"### {child.prog}"
                yield ""
                about = helps.get(name, "")
                yield f"{about[0].upper()}{about[1:]}." if about else ""
                yield ""
                yield from _arguments(child, is_server=is_server)
        elif "--help" not in action.option_strings and not (is_server and _SETTINGS & set(action.option_strings)):
            rows.append(f"| `{_usage(action)}` | {_meaning(action)} |")
    if rows:
        yield from ("| argument | meaning |", "|---|---|", *rows, "")


def _usage(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices and not action.metavar:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    many = "…" if action.nargs in ("*", "+") else ""
    if not action.option_strings:
        return f"[{value}]{many}" if action.nargs in ("?", "*") else f"{value}{many}"
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}{many}")


def _meaning(action: argparse.Action) -> str:
    if action.help is argparse.SUPPRESS:
        return ""
    text = (action.help or "").replace("%%", "%").replace("|", "\\|")
    text = text.replace("%(default)s", str(action.default))
    return (
        f"{text}; required"
        if action.option_strings and action.required and text
        else text or ("required" if action.required and action.option_strings else "")
    )


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, "utf-8")
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
