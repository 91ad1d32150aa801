"""Operate the hub. Commands work on the database; the server may be running, except during restore."""

import argparse

from hubgate.cli.admin import (
    apps,
    maintenance,
    objects,
    organizations,
    quotas,
    redirects,
    registration_tokens,
    resources,
    tokens,
    users,
)

SUBJECTS = (
    users,
    organizations,
    quotas,
    redirects,
    apps,
    registration_tokens,
    resources,
    tokens,
    maintenance,
    objects,
)


def configure(parser: argparse.ArgumentParser) -> None:
    subjects = parser.add_subparsers(required=True, metavar="SUBJECT")
    for subject in SUBJECTS:
        subject.configure(subjects)


def run(options: argparse.Namespace) -> int:
    status: int = options.run(options)
    return status
