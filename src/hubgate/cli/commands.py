"""The table of all commands. A command's module is imported only when the command is called."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command. `configure` is the name of the function in its module that adds the arguments."""

    name: str
    help: str
    module: str
    configure: str = "configure"
    needs_server: bool = False


def _server_command(name: str, summary: str) -> Command:
    return Command(name, summary, f"hubgate.cli.{name}", needs_server=True)


COMMANDS = (
    Command("login", "sign in with a code that you type in a browser", "hubgate.cli.user.account", "configure_login"),
    Command("logout", "revoke and delete the stored sign-in", "hubgate.cli.user.account", "configure_logout"),
    Command("whoami", "show the signed-in user and the hub", "hubgate.cli.user.account", "configure_whoami"),
    Command("webhooks", "create, list, change and test webhooks", "hubgate.cli.user.webhooks"),
    Command("spaces", "list, restart and pause Spaces, read their logs, set secrets", "hubgate.cli.user.spaces"),
    Command("repos", "create, list and delete repos", "hubgate.cli.user.repos"),
    Command("upload", "upload files to a repo", "hubgate.cli.user.files", "configure_upload"),
    Command("download", "download files from a repo", "hubgate.cli.user.files", "configure_download"),
    Command("completion", "print a script that completes commands in your shell", "hubgate.cli.user.completion"),
    _server_command("serve", "run the hub"),
    _server_command("demo", "run a hub with example content, an example app and a webhook receiver"),
    _server_command("deliver", "run only the background process"),
    _server_command("migrate", "migrate the database to this version's schema"),
    _server_command("doctor", "check configuration, database, keys and folders"),
    _server_command("admin", "operate the hub: users, organizations, apps, tokens, keys, backup"),
)
