"""A webhook receiver. Run it with WEBHOOK_SECRET set, then create a webhook for the URL that it prints."""

from hubgate.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer()


@app.add_webhook
def trigger_training(payload: WebhookPayload) -> dict[str, str | None]:
    """Starts a training run when the content of a dataset changes."""
    if payload.repo.type == "dataset" and payload.event.scope == "repo.content":
        print(f"training on {payload.repo.name} at {payload.repo.head_sha}", flush=True)
    return {"seen": payload.repo.head_sha}


if __name__ == "__main__":
    app.launch()
