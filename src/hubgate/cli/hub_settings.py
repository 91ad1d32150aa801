"""The settings as flags, the same on every command of the hub."""

import argparse
from pathlib import Path

from hubgate.server.settings import OPTIONS, Settings, load


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings (else HUBGATE_… variables, else hubgate.toml)")
    group.add_argument("--config", type=Path, metavar="FILE", help="configuration file instead of ./hubgate.toml")
    for item in OPTIONS:
        flag = "--" + item.name.replace("_", "-")
        group.add_argument(flag, metavar="VALUE", help=item.metadata["meaning"].replace("%", "%%"))


def read(options: argparse.Namespace) -> Settings:
    given = {item.name: getattr(options, item.name) for item in OPTIONS}
    return load({name: value for name, value in given.items() if value is not None}, config=options.config)
