"""The OpenAI SDK against the gateway: a completion is streamed piece by piece from a real service."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.sites import PROGRAMS
from tests.bed.upstream import UpstreamRequest, run_upstream, verified_claims

PIECES = ("one", "two", "three")
MODEL = {"id": "tiny", "object": "model", "created": 1, "owned_by": "acme"}


@dataclass
class InferenceService:
    """A small service with OpenAI's interface. Each piece of a completion waits for `may_send`."""

    hub_url: str = ""
    may_send: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    namespaces: set[str] = field(default_factory=set)

    def answer(self, request: UpstreamRequest) -> None:
        self.namespaces.add(verified_claims(self.hub_url, request.token)["namespace"])
        body = json.loads(request.body() or b"{}")
        if request.path == "/v1/models":
            request.reply({"object": "list", "data": [MODEL]})
        elif request.path == "/v1/embeddings":
            vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            request.reply({"object": "list", "data": [vector], "model": "tiny", "usage": usage})
        else:
            assert (request.path, body["stream"]) == ("/v1/chat/completions", True)
            self._stream(request)

    def _stream(self, request: UpstreamRequest) -> None:
        request.start(200, ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        for piece in PIECES:
            assert self.may_send.acquire(timeout=60)
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}
            request.write_chunk(f"data: {json.dumps(event)}\n\n".encode())
        request.write_chunk(b"data: [DONE]\n\n")
        request.write(b"0\r\n\r\n")


@pytest.fixture
def service() -> InferenceService:
    return InferenceService()


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path, service: InferenceService) -> Iterator[RunningHub]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with (
        run_upstream(service.answer) as upstream,
        run_hub(settings_for(url, tmp_path, inference_upstream=upstream.url)) as hub,
    ):
        service.hub_url = hub.url
        yield hub


@pytest.mark.parametrize("namespace", ["ada", "acme"])
def test_completion_is_streamed(hub: RunningHub, service: InferenceService, tmp_path: Path, namespace: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    variables = {"BASE_URL": f"{hub.url}/v1", "API_KEY": create_token(hub, ada)}
    if namespace == "acme":
        variables["BILL_TO"] = "acme"
    client = Client("openai", tmp_path, hub.url)
    with client.running("python", str(PROGRAMS / "openai_stream.py"), **variables) as program:
        program.until("^models: tiny$")
        for piece in PIECES:
            # The service sends a piece only after the previous one was printed.
            service.may_send.release()
            program.until(f"^piece: {piece}$")
            program.send_line("")
        program.until(r"^embedding: \[0.5\]$")
        program.finish()
    assert service.namespaces == {namespace}


def test_inference_client_streams_for_an_organization(
    hub: RunningHub, service: InferenceService, tmp_path: Path
) -> None:
    """huggingface_hub's own client, with the organization that pays."""
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    service.may_send.release(len(PIECES))
    program = (
        "import sys\nfrom huggingface_hub import InferenceClient\n"
        "client = InferenceClient(base_url=sys.argv[1], api_key=sys.argv[2], bill_to='acme')\n"
        "stream = client.chat_completion([{'role': 'user', 'content': 'Count.'}], model='tiny', stream=True)\n"
        "print(*(event.choices[0].delta.content for event in stream))\n"
    )
    client = Client("huggingface_hub-2.4", tmp_path, hub.url)
    done = client.run("python", "-c", program, f"{hub.url}/v1", create_token(hub, ada))
    assert done.stdout == "one two three\n", done.stderr
    assert service.namespaces == {"acme"}
