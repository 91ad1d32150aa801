"""Every command by name; what it needs is imported only when it is called."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """`configure` names the function of its module that adds the arguments."""

    name: str
    help: str
    module: str
    configure: str = "configure"
    needs_server: bool = False


def _hubs(name: str, summary: str) -> Command:
    return Command(name, summary, f"hubgate.cli.{name}", needs_server=True)


COMMANDS = (
    Command("login", "sign in with a code that you type in a browser", "hubgate.cli.user.account", "configure_login"),
    Command("logout", "end the sign-in and forget it", "hubgate.cli.user.account", "configure_logout"),
    Command("whoami", "who is signed in, where", "hubgate.cli.user.account", "configure_whoami"),
    Command("webhooks", "make, look at, change and try webhooks", "hubgate.cli.user.webhooks"),
    Command("repos", "make, list and delete repos", "hubgate.cli.user.repos"),
    Command("upload", "send files to a repo", "hubgate.cli.user.files", "configure_upload"),
    Command("download", "fetch files of a repo", "hubgate.cli.user.files", "configure_download"),
    Command("completion", "print a script that completes commands in your shell", "hubgate.cli.user.completion"),
    _hubs("serve", "run the hub"),
    _hubs("deliver", "run the background process alone"),
    _hubs("migrate", "bring the database to this version's schema"),
    _hubs("doctor", "check configuration, database, keys and folders"),
    _hubs("admin", "operate the hub: users, organizations, apps, tokens, keys, backup"),
)
