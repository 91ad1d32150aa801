"""Handlers from huggingface_hub's webhook guide run unchanged on that library and on ours."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.bed.clients import Client, Conversation
from tests.bed.processes import ROOT, free_port
from tests.bed.receiver_library import SECRET
from tests.bed.sites import PROGRAMS

from hubgate.receiver.testing import KINDS, SignedDelivery, signed_delivery

# Anywhere in a line: the server may still be logging while a handler prints.
SAID = r"said (\[.*\])"
# huggingface_hub with gradio, which includes FastAPI.
ENVIRONMENT = "webhooks-2.4"
SHAPES = (PROGRAMS / "guide_shapes.py").read_text()
IMPORT = "from huggingface_hub import"
OURS = "from hubgate.receiver import"
# Only the port and the tunnel are configured differently.
LAUNCH = {
    "theirs": "\napp.launch(share=False, server_name='127.0.0.1', server_port={port}, quiet=True)\n",
    "ours": "\napp.launch(port={port})\n",
}
OWN_PORT = "\nWebhooksServer.launch.__defaults__ = ('127.0.0.1', {port}, False, False)\n"
# Theirs of this version cannot start at the end of a script: gradio is imported too late then.
ENDINGS = {
    "theirs at once": "\nfarewell.launch()\n",
    "ours at once": OWN_PORT + "\nfarewell.launch()\n",
    "ours at exit": OWN_PORT,
}


@contextmanager
def running(folder: Path, whose: str, ending: str) -> Iterator[tuple[str, Conversation]]:
    port = free_port()
    shapes = SHAPES if whose == "theirs" else SHAPES.replace(IMPORT, OURS)
    assert shapes.count("huggingface_hub") == SHAPES.count("huggingface_hub") - (whose == "ours")
    (folder / "app.py").write_text(shapes + ending.format(port=port))
    variables = {
        "WEBHOOK_SECRET": SECRET,
        "GRADIO_ANALYTICS_ENABLED": "False",
        "NO_PROXY": "127.0.0.1",
        # Theirs opens a tunnel unless it detects a hosted environment.
        "SPACE_ID": "ada/receiver",
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "PYTHONPATH": str(ROOT / "src"),
        "HUBGATE_NO_EXPERIMENTAL_WARNING": "1",
        "HF_HUB_DISABLE_EXPERIMENTAL_WARNING": "1",
    }
    client = Client(ENVIRONMENT, folder, "http://127.0.0.1:9")
    with client.running("python", "app.py", **variables) as conversation:
        conversation.until(r"POST http\S+/webhooks/\w+")
        yield f"http://127.0.0.1:{port}", conversation


def post_delivery(url: str, path: str, delivery: SignedDelivery) -> tuple[int, object]:
    answer = httpx.post(url + path, headers=delivery.headers, content=delivery.body, timeout=60)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("whose", ["theirs", "ours"])
def test_server_object_receives_events(tmp_path: Path, whose: str) -> None:
    secret = "my_secret_key"
    with running(tmp_path, whose, LAUNCH[whose]) as (url, conversation):
        update = signed_delivery("repo.content.update", secret=secret)
        assert post_delivery(url, "/webhooks/say_hello", update) == (200, {"message": "hello"})
        assert post_delivery(url, "/webhooks/goodbye", update) == (200, {"message": "goodbye"})
        assert post_delivery(url, "/webhooks/number", update) == (200, 42)
        assert post_delivery(url, "/webhooks/nothing", update) == (200, None)
        assert post_delivery(url, "/webhooks/goodbye", signed_delivery("repo.create"))[0] == 401
        assert post_delivery(url, "/webhooks/goodbye", signed_delivery("repo.create", secret="wrong"))[0] == 403
        broken = SignedDelivery({"X-Webhook-Secret": secret, "Content-Type": "application/json"}, b'{"event": {}}')
        assert post_delivery(url, "/webhooks/goodbye", broken)[0] == 422
        for kind in KINDS:
            delivery = signed_delivery(kind, secret=secret)
            status, answer = post_delivery(url, "/webhooks/whole", delivery)
            assert (status, answer) == (200, expected(json.loads(delivery.body))), kind
            read = json.loads(conversation.until(SAID)[1])[1]
            assert read["repo"]["name"] == "ada/tiny"
            assert read["event"] == json.loads(delivery.body)["event"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_decorated_functions_receive_events(tmp_path: Path, ending: str) -> None:
    with running(tmp_path, ending.partition(" ")[0], ENDINGS[ending]) as (url, conversation):
        for kind, repo_type in (("repo.content.update", "dataset"), ("repo.config.update", "model")):
            delivery = signed_delivery(kind, type=repo_type, secret=SECRET)
            assert post_delivery(url, "/webhooks/trigger_training", delivery) == (200, None)
            assert post_delivery(url, "/webhooks/trigger_evaluation", delivery) == (200, None)
        assert post_delivery(url, "/webhooks/goodbye", signed_delivery("repo.create", secret=SECRET)) == (
            200,
            {"message": "goodbye"},
        )
        assert post_delivery(url, "/webhooks/goodbye", signed_delivery("repo.create"))[0] == 401
        said = [json.loads(conversation.until(SAID)[1]) for _ in range(2)]
    assert said == [["train", "ada/tiny"], ["evaluate", "ada/tiny", "repo.config"]]


BLOCKS = """
import sys
import gradio as gr
from fastapi import FastAPI, Request
from hubgate.receiver import WebhookPayload, WebhooksServer

with gr.Blocks() as ui:
    gr.Markdown("# A page made with gradio")

app = WebhooksServer(ui=ui, webhook_secret="my_secret_key")

@app.add_webhook
async def heard(request: Request, payload: WebhookPayload):
    return [request.headers["x-hubgate-attempt"], payload.repo.name, (await request.json())["repo"]["type"]]

if sys.argv[1] == "alone":
    app.launch(port=int(sys.argv[2]))
else:
    import uvicorn
    api = FastAPI(lifespan=app.lifespan, root_path="/seen/from/outside")
    below = WebhooksServer(webhook_secret="my_secret_key")
    below.add_webhook(heard)
    api.mount("/hooks", below)
    api.mount("/", app)
    print("POST http://127.0.0.1/webhooks/heard", flush=True)
    uvicorn.run(api, port=int(sys.argv[2]), log_level="warning")
"""


@pytest.mark.parametrize("how", ["alone", "mounted"])
def test_gradio_blocks_and_fastapi_requests_work(tmp_path: Path, how: str) -> None:
    port = free_port()
    (tmp_path / "blocks.py").write_text(BLOCKS)
    variables = {
        "PYTHONPATH": str(ROOT / "src"),
        "HUBGATE_NO_EXPERIMENTAL_WARNING": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "NO_PROXY": "127.0.0.1",
    }
    url = f"http://127.0.0.1:{port}"
    client = Client(ENVIRONMENT, tmp_path, "http://127.0.0.1:9")
    with client.running("python", "blocks.py", how, str(port), **variables) as conversation:
        conversation.until(r"POST http\S+/webhooks/heard")
        with httpx.Client(transport=httpx.HTTPTransport(retries=8), base_url=url, timeout=60) as browser:
            page = browser.get("/")
            assert page.status_code == 200
            assert re.search("gradio", page.text)
        delivery = signed_delivery("repo.create", secret="my_secret_key", attempt=4)
        assert post_delivery(url, "/webhooks/heard", delivery) == (200, ["4", "ada/tiny", "model"])
        assert post_delivery(url, "/webhooks/heard", signed_delivery("repo.create"))[0] == 401
        if how == "mounted":
            assert post_delivery(url, "/hooks/webhooks/heard", delivery) == (200, ["4", "ada/tiny", "model"])
            assert post_delivery(url, "/hooks/webhooks/heard", signed_delivery("repo.create", secret="wrong"))[0] == 403


def expected(payload: dict) -> object:  # type: ignore[type-arg]
    repo, discussion = payload["repo"], payload.get("discussion")
    return {
        "scope": payload["event"]["scope"],
        "repo": [repo["id"], repo["owner"]["id"], repo["private"], repo["url"]["web"]],
        "refs": [[ref["ref"], ref["oldSha"], ref["newSha"]] for ref in payload.get("updatedRefs", [])],
        "moved": payload["movedTo"]["name"] if "movedTo" in payload else None,
        "discussion": [discussion["num"], False, discussion["author"]["id"]] if discussion else None,
        "comment": payload["comment"]["content"] if "comment" in payload else None,
        "webhook": [payload["webhook"]["id"], 3],
    }
