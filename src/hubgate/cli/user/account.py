"""`login`, `logout` and `whoami`."""

import argparse
import os
import sys

from hubgate.cli.user import common, sign_in_display
from hubgate.client import Hub, HubgateError
from hubgate.client.codec import encode
from hubgate.client.responses import sanitized


def configure_login(parser: argparse.ArgumentParser) -> None:
    examples = """
  hubgate login
  hubgate login --endpoint https://hub.example"""
    common.configure(parser, _login, examples)


def configure_logout(parser: argparse.ArgumentParser) -> None:
    common.configure(parser, _logout, "  hubgate logout")


def configure_whoami(parser: argparse.ArgumentParser) -> None:
    examples = """
  hubgate whoami
  HUBGATE_TOKEN=hf_... hubgate whoami --json"""
    common.configure(parser, _whoami, examples)


run = common.perform


def _login(options: argparse.Namespace, hub: Hub) -> int:
    me = hub.login(lambda code: sign_in_display.show(code, sys.stderr if options.json else sys.stdout))
    if os.environ.get("HUBGATE_TOKEN"):
        print("! HUBGATE_TOKEN is set and is used instead of this sign-in.", file=sys.stderr)
    value = {"endpoint": hub.endpoint, "name": me.name}
    return common.print_result(options, value, f"✓ Signed in as {sanitized(me.name, 60)}. Try: hubgate webhooks list")


def _logout(options: argparse.Namespace, hub: Hub) -> int:
    if not hub.logout():
        raise HubgateError(f"not signed in to {hub.endpoint}.")
    return common.print_result(options, {"endpoint": hub.endpoint}, f"✓ Signed out of {hub.endpoint}.")


def _whoami(options: argparse.Namespace, hub: Hub) -> int:
    me = hub.whoami()
    full = f" ({sanitized(me.fullname, 60)})" if me.fullname and me.fullname != me.name else ""
    lines = [f"{sanitized(me.name, 60)}{full} at {hub.endpoint}"]
    lines += [f"  {sanitized(org.name, 60)}: {sanitized(org.role_in_org or 'member', 20)}" for org in me.orgs]
    return common.print_result(options, {"endpoint": hub.endpoint, **encode(me)}, "\n".join(lines))
