"""Print a script that completes commands and options in your shell."""

import argparse
import importlib
from collections.abc import Iterator

from hubgate.cli.commands import COMMANDS

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """examples:
  echo 'source <(hubgate completion bash)' >> ~/.bashrc
  echo 'source <(hubgate completion zsh)' >> ~/.zshrc
  hubgate completion fish > ~/.config/fish/completions/hubgate.fish"""
    parser.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> int:
    words = dict(_words())
    print(_fish(words) if options.shell == "fish" else _bash(words, zsh=options.shell == "zsh"))
    return 0


def _words() -> Iterator[tuple[str, list[str]]]:
    """For each command, the words that may follow it. Server commands are completed only by name: listing their
    arguments would import the server, which may not be installed.
    """
    yield "", [command.name for command in COMMANDS] + ["--help", "--version"]
    for command in COMMANDS:
        if command.needs_server:
            continue
        parser = argparse.ArgumentParser(prog=command.name)
        importlib.import_module(command.module).__dict__[command.configure](parser)
        yield from _words_of(command.name, parser)


def _words_of(typed: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    words: list[str] = []
    for action in parser._actions:  # noqa: SLF001 (argparse has no public API for them)
        words += [option for option in action.option_strings if option.startswith("--")]
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, child in action.choices.items():
                words.append(name)
                yield from _words_of(f"{typed} {name}", child)
        elif not action.option_strings and action.choices:
            words += [str(choice) for choice in action.choices]
    yield typed, words


def _bash(words: dict[str, list[str]], *, zsh: bool) -> str:
    known = "|".join(f'"{typed}"' for typed in words if typed)
    cases = "\n".join(f'    "{typed}") words="{" ".join(found)}" ;;' for typed, found in words.items())
    before = "autoload -U +X bashcompinit && bashcompinit\n" if zsh else ""
    return f"""{before}_hubgate() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" typed="" next="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="${{typed:+$typed }}${{COMP_WORDS[i]}}"
    case "$next" in {known}) typed="$next" ;; esac
  done
  case "$typed" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _hubgate hubgate"""


def _fish(words: dict[str, list[str]]) -> str:
    known = " ".join(f"'{typed}'" for typed in words if typed)
    lines = [
        "function __hubgate_typed",
        "  set -l words (commandline -opc)",
        "  set -l typed ''",
        "  for word in $words[2..-1]",
        '    set -l next (string trim -- "$typed $word")',
        f'    contains -- "$next" {known}; and set typed $next',
        "  end",
        '  test "$typed" = "$argv[1]"',
        "end",
    ]
    for typed, found in words.items():
        for word in found:
            option = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c hubgate -n \"__hubgate_typed '{typed}'\" {option}")
    return "\n".join(lines)
