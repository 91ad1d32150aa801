"""Receivers from huggingface_hub's webhook guide. Only the import line differs between the libraries."""

import asyncio
import json

from huggingface_hub import WebhookPayload, WebhooksServer, webhook_endpoint


def say(*words):
    print("said", json.dumps(words), flush=True)


# A decorated function; the server is created implicitly.
@webhook_endpoint
async def trigger_training(payload: WebhookPayload) -> None:
    if payload.repo.type == "dataset" and payload.event.action == "update":
        say("train", payload.repo.name)


# Several functions share that server.
@webhook_endpoint
async def trigger_evaluation(payload: WebhookPayload) -> None:
    if payload.repo.type == "model" and payload.event.action == "update":
        await asyncio.sleep(0)
        say("evaluate", payload.repo.name, payload.event.scope)


# With its own path, and not async.
@webhook_endpoint("/goodbye")
def farewell(payload: WebhookPayload):
    return {"message": "goodbye"}


# A server object with a secret.
app = WebhooksServer(webhook_secret="my_secret_key")


@app.add_webhook("/say_hello")
async def hello(payload: WebhookPayload):
    return {"message": "hello"}


@app.add_webhook
async def goodbye(payload: WebhookPayload):
    return {"message": "goodbye"}


@app.add_webhook
def whole(payload: WebhookPayload):
    say("whole", json.loads(payload.model_dump_json(exclude_none=True)))
    refs = payload.updatedRefs or []
    moved = payload.movedTo.name if payload.movedTo else None
    discussion = payload.discussion
    return {
        "scope": payload.event.scope,
        "repo": [payload.repo.id, payload.repo.owner.id, payload.repo.private, payload.repo.url.web],
        "refs": [[ref.ref, ref.oldSha, ref.newSha] for ref in refs],
        "moved": moved,
        "discussion": [discussion.num, discussion.isPullRequest, discussion.author.id] if discussion else None,
        "comment": payload.comment.content if payload.comment else None,
        "webhook": [payload.webhook.id, payload.webhook.version],
    }


@app.add_webhook
async def number():
    return 42


@app.add_webhook
async def nothing(payload: WebhookPayload):
    pass
