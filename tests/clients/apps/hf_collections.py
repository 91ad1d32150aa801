"""Collections with huggingface_hub: `hf_collections.py NAME OTHERS_TOKEN`, against HF_ENDPOINT as ada."""

import sys

from huggingface_hub import HfApi
from huggingface_hub.utils import HfHubHTTPError

NAME, OTHERS_TOKEN = sys.argv[1:3]
api, other, anyone = HfApi(), HfApi(token=OTHERS_TOKEN), HfApi(token=False)


def status(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except HfHubHTTPError as raised:
        return raised.response.status_code
    return 200


def items(slug, client=api):
    return [(item.item_id, item.item_type, item.note) for item in client.get_collection(slug).items]


model, dataset = f"ada/{NAME}", f"ada/{NAME}-rows"
api.create_repo(model)
api.create_repo(dataset, repo_type="dataset")

first = api.create_collection(f"Cool {NAME}", description="Things")
assert first.slug.startswith(f"ada/cool-{NAME}-"), first.slug
assert (first.title, first.description, first.private, first.items) == (f"Cool {NAME}", "Things", False, [])
assert status(api.create_collection, f"Cool {NAME}") == 409
assert api.create_collection(f"Cool {NAME}", description="Other", exists_ok=True).slug == first.slug
shared = api.create_collection(f"Shared {NAME}", namespace="acme", private=True)
assert shared.owner["name"] == "acme"
assert status(other.get_collection, shared.slug) == 404
assert status(other.create_collection, "Mine", namespace="acme") == 403

api.add_collection_item(first.slug, model, "model", note="Look")
filled = api.add_collection_item(first.slug, dataset, "dataset")
assert items(first.slug) == [(model, "model", "Look"), (dataset, "dataset", None)]
assert status(api.add_collection_item, first.slug, model, "model") == 409
api.add_collection_item(first.slug, model, "model", exists_ok=True)
assert status(api.add_collection_item, first.slug, "ada/absent", "model") == 404
assert status(api.add_collection_item, first.slug, "2307.09288", "paper") == 404
api.update_collection_item(first.slug, filled.items[0].item_object_id, note="Again")
api.update_collection_item(first.slug, filled.items[0].item_object_id, position=1)
assert items(first.slug) == [(dataset, "dataset", None), (model, "model", "Again")]
api.delete_collection_item(first.slug, filled.items[0].item_object_id)
assert status(api.delete_collection_item, first.slug, filled.items[0].item_object_id) == 404
api.delete_collection_item(first.slug, filled.items[0].item_object_id, missing_ok=True)
assert items(first.slug, anyone) == [(dataset, "dataset", None)]
# Older versions do not know collections as items; the hub accepts their request.
linked = api.add_collection_item(first.slug, shared.slug, "collection").items[-1]
assert linked.item_id in (shared.slug, shared.slug[-24:])
assert items(first.slug, anyone) == [(dataset, "dataset", None)]

renamed = api.update_collection_metadata(
    first.slug, title=f"New {NAME}", description="Changed", private=True, theme="pink", position=0
)
assert renamed.slug != first.slug
assert (renamed.theme, renamed.description, renamed.private, renamed.position) == ("pink", "Changed", True, 0)
assert api.get_collection(first.slug).slug == renamed.slug == api.get_collection(renamed.slug).slug
assert status(anyone.get_collection, renamed.slug) == 401

mine = {found.slug: found.position for found in api.list_collections(owner="ada")}
assert renamed.slug in mine
assert renamed.slug not in [found.slug for found in other.list_collections(owner="ada")]
containing = list(api.list_collections(item=f"datasets/{dataset}", sort="lastModified", limit=1))
assert [found.slug for found in containing] == [renamed.slug]

api.delete_collection(renamed.slug)
assert status(api.delete_collection, renamed.slug) == 404
api.delete_collection(renamed.slug, missing_ok=True)
api.delete_collection(shared.slug)
print("done")
