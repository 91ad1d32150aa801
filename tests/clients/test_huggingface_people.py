"""huggingface_hub, old and new versions: overviews, members over several pages, renamed accounts."""

import json
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.organizations import add_many_members
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM

PROGRAM = """
import json
from huggingface_hub import HfApi
api = HfApi()
said = {}
for name in ("acme2", "acme"):
    members = list(api.list_organization_members(name))
    said[name] = [len(members), members[0].username, members[-1].fullname, members[0].avatar_url]
user = api.get_user_overview("ADA")
said["user"] = [user.username, user.is_pro, user.num_models, [org.name for org in user.orgs]]
if hasattr(api, "get_organization_overview"):
    overview = api.get_organization_overview("acme")
    said["organization"] = [overview.name, overview.num_users, overview.num_models]
print(json.dumps(said))
"""


@pytest.mark.parametrize("version", ["0.26", "0.36", "1.28", "2.4"])
def test_overviews_and_members_are_read(sqlite_hub: RunningHub, tmp_path: Path, version: str) -> None:
    hub, home = sqlite_hub, tmp_path / "home"
    home.mkdir()
    ada = create_user(hub, "Ada")
    acme = create_organization(hub, "acme", ada)
    add_many_members(hub, acme, 250)
    hub.clock.advance(24 * 3600)
    hub.call(lambda opened: settings.rename(opened.accounts, acme, "acme2", SYSTEM))
    client = Client(f"huggingface_hub-{version}", home, hub.url)
    done = client.run("python", "-c", PROGRAM, token=create_token(hub, ada))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    members = [251, "Ada", "Ünal 0fa", f"/avatars/{ada.id}.svg"]
    assert (said["acme2"], said["acme"]) == (members, members)
    assert said["user"] == ["Ada", False, 0, ["acme2"]]
    assert said.get("organization", ["acme2", 251, 0]) == ["acme2", 251, 0]
    assert ("organization" in said) == (version != "0.26")
