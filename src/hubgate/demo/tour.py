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
    chat, sentiment, large = state.webhooks["chat"], f"{hub}/{content.SENTIMENT}", f"{hub}/{content.LARGE}"

    def as_user(user: str, command: str) -> str:
        # In a subshell: the variables must not stay in the shell of the terminal.
        return f"(. {shlex.quote(str(environment_file(folder, user)))}; {command})"

    rows = f"hubgate upload {content.REVIEWS} $f --type dataset --to data/today.csv"
    download = f'curl -s -o /dev/null -w "%{{http_code}}\\n" -H "Authorization: Bearer $HUBGATE_TOKEN" {large}/raw/main'
    subject = "-d subject_token=lin@example.org -d subject_token_type=urn:service:token-type:user-email"
    exchange = f"-d grant_type=urn:ietf:params:oauth:grant-type:token-exchange {subject}"
    return [
        Step(
            "Sign in as ada: what needs attention, and recent activity",
            (f"{hub}/login",),
            (as_user("ada", "hubgate whoami"),),
        ),
        Step(
            "Look at a model, and clone it without an account",
            (sentiment,),
            (f'git clone --quiet {sentiment} "$(mktemp -d)/sentiment" && echo cloned',),
        ),
        Step(
            "Sign in to another app with your hub account, then see and revoke what it may do",
            (f"{addresses.app}/", f"{hub}/settings/connected"),
        ),
        Step(
            "Push rows to the dataset: the receiver trains, and commits the result to the model",
            (f"{addresses.receiver}/", f"{sentiment}/commits/main"),
            (as_user("ada", f"f=$(mktemp) && date > $f && {rows}"),),
        ),
        Step(
            "A month of webhook deliveries, with charts; replay the failed ones",
            (f"{hub}/settings/webhooks/{chat}?range=month",),
            (
                as_user("ada", f"hubgate webhooks activity {chat} --state failed"),
                as_user("ada", f"hubgate webhooks replay {chat} --since 14d --state failed"),
            ),
        ),
        Step(
            "lin has asked for access to a gated model: 403 until you grant it",
            (f"{large}/settings/access",),
            (as_user("lin", f"{download}/config.json"),),
        ),
        Step(
            "Read a discussion, merge lin's pull request, browse a collection",
            (f"{sentiment}/discussions", f"{hub}/collections"),
        ),
        Step(
            "An organization's server requests a token for lin, which the audit log records; operate the hub",
            (f"{acme}/audit-log", f"{hub}/operator"),
            (
                as_user("ada", f'curl -s -w "\\n" -u "$NIGHTLY_JOBS" {hub}/oauth/token {exchange}'),
                as_user("ada", "hubgate doctor"),
            ),
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
