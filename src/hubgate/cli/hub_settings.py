"""The settings as command-line flags, the same for all commands of the server."""

import argparse
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from hubgate.server.setting_values import base_url
from hubgate.server.settings import OPTIONS, Settings, load
from hubgate.server.storage.running_address import running_address

# The flags that --help of an admin command lists. The other settings are accepted too.
FOR_OPERATORS = ("data_dir", "database_url", "secret_key")

_DEFAULTS = {item.name: item.metadata["default"] for item in OPTIONS}


def add_to(parser: argparse.ArgumentParser, shown: tuple[str, ...] | None = None) -> None:
    """Add a flag for each setting. --help lists those in `shown`; None lists all."""
    group = parser.add_argument_group(
        "settings (default: HUBGATE_… variables, then hubgate.toml; see docs/settings.md)"
    )
    group.add_argument("--config", type=Path, metavar="FILE", help="configuration file instead of ./hubgate.toml")
    for item in OPTIONS:
        default = f" (default {item.metadata['default']})" if item.metadata["default"] else ""
        text = (item.metadata["meaning"] + default).replace("%", "%%")
        hidden = shown is not None and item.name not in shown
        flag = "--" + item.name.replace("_", "-")
        group.add_argument(flag, metavar="VALUE", help=argparse.SUPPRESS if hidden else text)


def mail_destination(settings: Settings) -> str:
    """Where mail is sent, as the end of a sentence that begins with "mail"."""
    if not settings.smtp_url:
        return f"is written to {settings.data_dir / 'mail'} (set HUBGATE_SMTP_URL to send it)"
    return f"is sent through {urlsplit(settings.smtp_url).netloc.rpartition('@')[2]}"


def read(options: argparse.Namespace) -> Settings:
    given = {item.name: getattr(options, item.name) for item in OPTIONS}
    return load({name: value for name, value in given.items() if value is not None}, config=options.config)


def read_for_operator(options: argparse.Namespace) -> Settings:
    """The settings of a command that works on the database. Its links start with the address of the hub that runs in
    the data folder, unless an address is configured.
    """
    settings = read(options)
    is_configured = settings.raw["base_url"] or any(settings.raw[name] != _DEFAULTS[name] for name in ("host", "port"))
    address = None if is_configured else running_address(settings.data_dir)
    if not address or address == settings.base_url:
        return settings
    try:
        checked = base_url(address)
    except ValueError:
        return settings
    return replace(settings, base_url=checked, raw={**settings.raw, "base_url": checked})
