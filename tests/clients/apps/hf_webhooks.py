"""All operations of huggingface_hub on webhooks; prints each answer as its dataclasses store it, and each error's text.

`python hf_webhooks.py URL`; prints one JSON object.
"""

import dataclasses
import inspect
import json
import sys

from huggingface_hub import HfApi, WebhookInfo, WebhookWatchedItem

URL = sys.argv[1]
api = HfApi()
said = {}


def keep(name, found):
    for one in found if isinstance(found, list) else [found]:
        assert isinstance(one, WebhookInfo), one
        assert all(isinstance(watched, WebhookWatchedItem) for watched in one.watched), one
    said[name] = [dataclasses.asdict(one) for one in found] if isinstance(found, list) else dataclasses.asdict(found)
    return found


def refused(name, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:
        said[name] = [type(error).__name__, str(error)]
    else:
        said[name] = "it was accepted"


user = {"type": "user", "name": "ada"}
keep("none yet", api.list_webhooks())
made = keep(
    "made",
    api.create_webhook(
        url=URL,
        watched=[user, WebhookWatchedItem(type="org", name="acme"), WebhookWatchedItem(type="model", name="bob/Later")],
        domains=["discussion", "repo"],
        secret="my secret",
    ),
)
least = keep("least", api.create_webhook(url=URL, watched=[{"type": "dataset", "name": "ada/rows"}, user, user]))
keep("got", api.get_webhook(made.id))
keep("listed", api.list_webhooks())
keep("new url", api.update_webhook(made.id, url=URL + "/other"))
keep("new watched", api.update_webhook(made.id, watched=[WebhookWatchedItem(type="space", name="ada/board")]))
keep("new domains", api.update_webhook(made.id, domains=["discussion"]))
keep("new secret", api.update_webhook(made.id, secret="another"))
keep("all new", api.update_webhook(made.id, url=URL, watched=[user], domains=["repo"], secret="a third"))
keep("disabled", api.disable_webhook(made.id))
keep("disabled twice", api.disable_webhook(made.id))
keep("got disabled", api.get_webhook(made.id))
keep("changed disabled", api.update_webhook(made.id, domains=["repo", "discussion"]))
keep("enabled", api.enable_webhook(made.id))
said["deleted"] = api.delete_webhook(made.id)
refused("get gone", api.get_webhook, made.id)
refused("update gone", api.update_webhook, made.id, url=URL)
refused("enable gone", api.enable_webhook, made.id)
refused("delete gone", api.delete_webhook, made.id)
refused("not an id", api.get_webhook, "nothing")
refused("nothing watched", api.create_webhook, url=URL, watched=[])
refused("unknown type", api.create_webhook, url=URL, watched=[{"type": "planet", "name": "mars"}])
refused("unknown domain", api.update_webhook, least.id, domains=["weather"])
refused("no address", api.create_webhook, url="nowhere", watched=[user])
refused("a secret with a line break", api.update_webhook, least.id, secret="two\nlines")
refused("without a token", api.list_webhooks, token=False)
if "job_id" in inspect.signature(api.create_webhook).parameters:
    refused("a job", api.create_webhook, job_id="687f911eaea852de79c4a50a", watched=[user])
    refused("a job with secrets", api.create_webhook, job_id="687f", watched=[user], secrets={"A": "b"})
    refused("becomes a job", api.update_webhook, least.id, job_id="687f911eaea852de79c4a50a")
keep("left", api.list_webhooks())
print(json.dumps(said))
