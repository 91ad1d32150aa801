"""Gated access with huggingface_hub: `hf_access.py NAME OTHERS_TOKEN`, against HF_ENDPOINT as ada.

Another user, bob, is granted access, loses it and gets it back.
"""

import sys
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.utils import GatedRepoError, HfHubHTTPError

NAME, OTHERS_TOKEN = sys.argv[1:3]
REPO = f"ada/{NAME}"
api = HfApi()


def status(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except HfHubHTTPError as raised:
        return raised.response.status_code
    return 200


def download():
    return hf_hub_download(REPO, "weights.txt", token=OTHERS_TOKEN, cache_dir=mkdtemp())


def is_refused():
    try:
        download()
    except GatedRepoError:
        return True
    return False


api.create_repo(REPO)
api.upload_file(path_or_fileobj=b"weights", path_in_repo="weights.txt", repo_id=REPO)
assert status(api.grant_access, REPO, "bob") == 400, "the repo is not gated yet"
api.update_repo_settings(REPO, gated="manual")
assert is_refused()
for requests in (api.list_pending_access_requests, api.list_accepted_access_requests):
    assert list(requests(REPO)) == []

api.grant_access(REPO, "bob")
(found,) = api.list_accepted_access_requests(REPO)
assert (found.username, found.fullname, found.email, found.status) == ("bob", "bob", None, "accepted")
assert isinstance(found.timestamp, datetime)
assert Path(download()).read_text() == "weights"
assert status(api.grant_access, REPO, "bob") == 400
assert status(api.accept_access_request, REPO, "bob") == 404

api.cancel_access_request(REPO, "bob")
assert [each.username for each in api.list_pending_access_requests(REPO)] == ["bob"]
assert is_refused()
assert status(api.cancel_access_request, REPO, "bob") == 404
api.reject_access_request(REPO, "bob", rejection_reason="Not now")
assert [each.status for each in api.list_rejected_access_requests(REPO)] == ["rejected"]
assert status(api.reject_access_request, REPO, "bob", rejection_reason=None) == 404
api.accept_access_request(REPO, "bob")
assert not is_refused()
other = HfApi(token=OTHERS_TOKEN)
assert status(lambda: list(other.list_accepted_access_requests(REPO))) == 403
assert status(other.grant_access, REPO, "ada") == 403
assert status(api.grant_access, REPO, "nobody-here") == 404
print("done")
