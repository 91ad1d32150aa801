"""The tour: eight steps with links and commands. A test opens every link and runs every command."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from hubgate.demo import content
from hubgate.demo.state import State, write_private


@dataclass(frozen=True)
class Addresses:
    hub: str
    app: str
    receiver: str


@dataclass(frozen=True)
class Step:
    title: str
    links: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def write_environments(folder: Path, state: State, addresses: Addresses) -> None:
    """Write a file of shell variables for each user. The commands read it, so that they show no token."""
    program = Path(sys.argv[0])
    programs = program.absolute().parent if program.name == "hubgate" else Path(sys.executable).parent
    for user in state.tokens:
        variables = {
            "HUBGATE_ENDPOINT": addresses.hub,
            "HUBGATE_TOKEN": state.tokens[user],
            "HUBGATE_DATA_DIR": str(folder),
        }
        if user == "ada":
            variables["NIGHTLY_JOBS"] = f"{state.exchange_id}:{state.exchange_secret}"
        lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        lines.append(f"export PATH={shlex.quote(str(programs))}:$PATH")
        write_private(environment_file(folder, user), "\n".join(lines) + "\n")


def environment_file(folder: Path, user: str) -> Path:
    return folder / f"{user}.env"


def steps(folder: Path, state: State, addresses: Addresses) -> list[Step]:
    hub, acme = addresses.hub, f"{addresses.hub}/organizations/acme/settings"
    chat = state.webhooks["chat"]
    ada, lin = (f". {shlex.quote(str(environment_file(folder, user)))}" for user in ("ada", "lin"))
    gated = f"$HUBGATE_ENDPOINT/{content.LARGE}/resolve/main/model.bin"
    exchange = (
        "-d grant_type=urn:ietf:params:oauth:grant-type:token-exchange -d subject_token=lin@example.org "
        "-d subject_token_type=urn:service:token-type:user-email"
    )
    return [
        Step("Sign in as ada: what needs attention, recent activity", (f"{hub}/login",), (f"{ada}; hubgate whoami",)),
        Step(
            "Look at a model, clone it without an account",
            (f"{hub}/{content.SENTIMENT}",),
            (f'git clone --quiet {hub}/{content.SENTIMENT} "$(mktemp -d)/sentiment" && echo cloned',),
        ),
        Step(
            "Sign in to another app with your hub account, then see and revoke what it may do",
            (f"{addresses.app}/", f"{hub}/settings/connected"),
        ),
        Step(
            "Push rows to the dataset: the receiver trains and commits the result to the model",
            (f"{addresses.receiver}/", f"{hub}/{content.SENTIMENT}/commits/main"),
            (
                f"{ada}; f=$(mktemp) && date > $f && "
                f"hubgate upload {content.REVIEWS} $f --type dataset --to data/today.csv",
            ),
        ),
        Step(
            "A month of webhook deliveries, with charts; the failed ones can be replayed",
            (f"{acme}/webhooks/{chat}?range=30d",),
            (
                f"{ada}; hubgate webhooks activity {chat} --org acme --state failed",
                f"{ada}; hubgate webhooks replay {chat} --org acme --since 14d --state failed",
            ),
        ),
        Step(
            "lin has asked for access to a gated model (403); grant it (200)",
            (f"{hub}/{content.LARGE}/settings/access",),
            (
                f'{lin}; curl -s -o /dev/null -w "%{{http_code}}\\n" -L -H "Authorization: Bearer $HUBGATE_TOKEN" {gated}',
            ),
        ),
        Step(
            "Merge lin's pull request; browse the collection",
            (f"{hub}/{content.SENTIMENT}/discussions", f"{hub}/collections"),
        ),
        Step(
            "An organization's server gets a short-lived token for lin, which the audit log shows; operate the hub",
            (f"{acme}/audit-log", f"{hub}/operator"),
            (f'{ada}; curl -s -u "$NIGHTLY_JOBS" {hub}/oauth/token {exchange}', f"{ada}; hubgate doctor"),
        ),
    ]


def text(folder: Path, state: State, addresses: Addresses) -> str:
    lines = [
        f"The demo is ready: {addresses.hub}",
        f"  example app   {addresses.app}",
        f"  receiver      {addresses.receiver}",
        *(f"  sign in as    {user}, password {password}" for user, password in state.passwords.items()),
    ]
    for number, step in enumerate(steps(folder, state, addresses), 1):
        lines += ["", f"{number}. {step.title}", *(f"   {link}" for link in step.links)]
        lines += [f"   $ {command}" for command in step.commands]
    lines += ["", f"Data is in {folder}; the next start continues with it, --reset starts anew. Ctrl-C stops all."]
    return "\n".join(lines)
