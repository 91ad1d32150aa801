"""The recorded payloads can be parsed by the model of huggingface_hub's webhook server."""

import json
from pathlib import Path

from tests.bed.clients import Client
from tests.protocol.golden import FOLDER

# The environment with pydantic, which parsing a payload needs.
WITH_MODELS = "attach_oauth-2.4"
READ = """
import json, sys, huggingface_hub
from huggingface_hub import WebhookPayload
said = {}
for name, payload in json.load(open(sys.argv[1])).items():
    read = WebhookPayload.model_validate(payload)
    said[name] = json.loads(read.model_dump_json(exclude_unset=True))
print(json.dumps([huggingface_hub.__version__, said]))
"""
# Fields that this model does not know.
UNKNOWN = ("updatedConfig",)


def test_every_recorded_payload_is_parsed_completely(tmp_path: Path) -> None:
    agreed = {file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
    assert agreed
    # As in a delivery.
    sent = {name: {**payload, "webhook": {"id": "0" * 23 + "9", "version": 3}} for name, payload in agreed.items()}
    client = Client(WITH_MODELS, tmp_path, "http://127.0.0.1:9")
    (tmp_path / "sent.json").write_text(json.dumps(sent))
    done = client.run("python", "-c", READ, "sent.json")
    assert done.returncode == 0, done.stderr
    version, read = json.loads(done.stdout)
    assert version == "2.4.0"
    for name, payload in sent.items():
        expected = {member: value for member, value in payload.items() if member not in UNKNOWN}
        # It is `head_sha` in the model; others read `headSha`.
        expected["repo"] = {member: value for member, value in payload["repo"].items() if member != "headSha"}
        assert read[name] == expected, name
        assert read[name]["repo"].get("head_sha") == payload["repo"].get("headSha")
