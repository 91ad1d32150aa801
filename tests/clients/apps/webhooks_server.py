"""huggingface_hub's own receiver, as in its guide. Prints every payload it receives.

`python webhooks_server.py PORT`; the secret is in WEBHOOK_SECRET.
"""

import sys

from huggingface_hub import WebhookPayload, WebhooksServer

app = WebhooksServer()


@app.add_webhook
async def heard(payload: WebhookPayload):
    print("heard", payload.model_dump_json(exclude_none=True), flush=True)
    return {"scope": payload.event.scope}


app.launch(share=False, server_name="127.0.0.1", server_port=int(sys.argv[1]))
