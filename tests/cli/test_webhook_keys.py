"""Secrets and keys of webhooks stay usable after a change of the server secret."""

from collections.abc import Iterator

import pytest
from tests.bed.engines import SECRET_KEY, settings_for
from tests.bed.operator import Operator
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, secret_of, settle

NEW = "a new secret of more than thirty-two characters"
PATH = "/api/settings/webhooks"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def test_webhook_secrets_and_keys_are_resealed(operator: Operator, receiver: Receiver) -> None:
    url = operator.variables["HUBGATE_DATABASE_URL"]
    with run_hub(settings_for(url, operator.data_dir, egress_allow="127.0.0.0/8")) as hub:
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as ada:
            keyed = create_webhook(ada, receiver.url, "user:ada")
            shared = create_webhook(ada, receiver.url, "user:ada", secret="first")
            changed = ada.post(f"{PATH}/{shared['id']}", json={"secret": "second", "overlapSeconds": 600})
            assert changed.status_code == 200
    both = f"{NEW},{SECRET_KEY}"
    # Two private keys, a secret and the one before it, and the key that signs ID tokens.
    assert operator.json("admin", "keys", "reseal", HUBGATE_SECRET_KEY=both) == {"resealed": 5}
    assert operator.json("admin", "keys", "reseal", HUBGATE_SECRET_KEY=both) == {"resealed": 0}
    with run_hub(settings_for(url, operator.data_dir, egress_allow="127.0.0.0/8", secret_key=NEW)) as hub:
        with api(hub, token) as ada:
            assert (secret_of(hub, keyed["id"]), secret_of(hub, shared["id"])) == (None, "second")
            create_repo(ada, "tiny")
            assert settle(hub) == 2
        signed = {one.headers["x-hubgate-webhook"]: one.headers["webhook-signature"] for one in receiver.received}
        assert signed[keyed["id"]].startswith("v1a,")
        assert signed[shared["id"]].count("v1,") == 2
