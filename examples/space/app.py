"""A webhook receiver as a Space: the hub runs it, lets it sleep, and starts it for the next delivery."""

from hubgate.receiver import WebhookPayload, WebhooksServer

# Requires deliveries to have the Space's secret WEBHOOK_SECRET.
app = WebhooksServer()


@app.add_webhook
def trigger_training(payload: WebhookPayload) -> dict[str, str | None]:
    """Runs at /webhooks/trigger_training. What it prints is in the log of the Space."""
    if payload.repo.type == "dataset" and payload.event.scope == "repo.content":
        print(f"training on {payload.repo.name} at {payload.repo.head_sha}", flush=True)
    return {"seen": payload.repo.head_sha}


if __name__ == "__main__":
    app.launch()
