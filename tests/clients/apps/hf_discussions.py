"""Discussions and pull requests with huggingface_hub in Python, check by check: `hf_discussions.py NAME OTHERS_TOKEN`.

Runs in that client's own environment against HF_ENDPOINT. Prints a JSON object of failures, which should be empty.
"""

import io
import json
import sys
import traceback
import warnings

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.utils import HfHubHTTPError, RepositoryNotFoundError

warnings.simplefilter("ignore")
REPO, OTHERS_TOKEN = f"ada/{sys.argv[1]}", sys.argv[2]
api, other, anyone = HfApi(), HfApi(token=OTHERS_TOKEN), HfApi(token=False)


def refused(status, call, *arguments):
    """The error of a call that must be rejected with this status."""
    try:
        call(*arguments)
    except HfHubHTTPError as error:
        found = error
    else:
        raise AssertionError(f"{call.__name__} was not rejected")
    assert found.response.status_code == status, found
    return str(found)


def numbers(**filters):
    return [found.num for found in api.get_repo_discussions(REPO, **filters)]


def details(num):
    return api.get_discussion_details(REPO, discussion_num=num)


def check_discussion():
    api.create_repo(REPO)
    opened = other.create_discussion(REPO, title="  A question \n", description="Which data?")
    assert (opened.num, opened.title, opened.author, opened.status) == (1, "A question", "bob", "open"), opened
    assert (opened.is_pull_request, opened.git_reference, opened.diff) == (False, None, None)
    assert opened.url.endswith(f"/{REPO}/discussions/1")
    assert opened == details(1) == anyone.get_discussion_details(REPO, discussion_num=1)
    assert [event.content for event in opened.events] == ["Which data?"]
    assert "library" in api.create_discussion(REPO, title="Without a description").events[0].content


def check_comments():
    comment = api.comment_discussion(REPO, 1, "The **second** one.")
    assert comment in details(1).events
    assert comment.rendered.strip() == "<p>The <strong>second</strong> one.</p>"
    edited = api.edit_discussion_comment(REPO, 1, comment.id.upper(), "The first one.")
    assert (edited.content, edited.edited, edited.number_of_edits, edited.last_edited_by) == (
        "The first one.", True, 1, "ada",
    )  # fmt: skip
    assert edited in details(1).events
    refused(403, other.edit_discussion_comment, REPO, 1, comment.id, "forged")
    hidden = api.hide_discussion_comment(REPO, 1, comment.id)
    assert (hidden.hidden, hidden.content) == (True, "This comment has been hidden")
    assert hidden in details(1).events


def check_title_and_status():
    renamed = api.rename_discussion(REPO, 1, "Answered")
    assert (renamed.old_title, renamed.new_title) == ("A question", "Answered")
    closed = other.change_discussion_status(REPO, 1, "closed", comment="Thanks")
    assert (closed.new_status, details(1).status, details(1).events[-1]) == ("closed", "closed", closed)
    assert details(1).events[-2].content == "Thanks"
    assert other.change_discussion_status(REPO, 1, "open").new_status == "open"
    assert details(1).title == "Answered"


def check_pull_request_without_commits():
    draft = api.create_pull_request(REPO, title="Soon")
    assert (draft.num, draft.status, draft.git_reference) == (3, "draft", "refs/pr/3"), draft
    assert (draft.target_branch, draft.conflicting_files, draft.merge_commit_oid) == ("refs/heads/main", [], None)
    assert api.model_info(REPO, revision="refs/pr/3").sha == api.model_info(REPO).sha
    assert numbers() == [3, 2, 1]
    assert numbers(discussion_type="pull_request") == [3]
    assert numbers(discussion_type="discussion", author="bob") == [1]
    assert numbers(discussion_status="open") == [3, 2, 1]
    assert numbers(discussion_status="closed") == []
    api.change_discussion_status(REPO, 3, "open")
    api.merge_pull_request(REPO, 3, comment="Nothing in it")
    assert (details(3).status, details(3).merge_commit_oid) == ("merged", api.model_info(REPO).sha)


def check_pull_request_with_commits():
    done = other.upload_file(
        path_or_fileobj=b"an idea\n", path_in_repo="idea.txt", repo_id=REPO, commit_message="An idea", create_pr=True
    )
    assert (done.pr_num, done.pr_revision) == (4, "refs/pr/4"), done
    other.create_commit(
        REPO,
        [CommitOperationAdd("large.bin", io.BytesIO(b"w" * 100_000))],
        commit_message="Weights",
        revision="refs/pr/4",
    )
    found = details(4)
    assert [event.summary for event in found.events if event.type == "commit"] == ["An idea", "Weights"]
    assert "+an idea" in found.diff
    assert found.conflicting_files == []
    refused(403, other.merge_pull_request, REPO, 4)
    api.merge_pull_request(REPO, 4)
    assert details(4).status == "merged"
    assert {"idea.txt", "large.bin"} <= set(api.list_repo_files(REPO))
    assert api.list_repo_commits(REPO)[0].commit_id == details(4).merge_commit_oid


def check_conflicts():
    opened = other.upload_file(path_or_fileobj=b"one\n", path_in_repo="idea.txt", repo_id=REPO, create_pr=True)
    api.upload_file(path_or_fileobj=b"two\n", path_in_repo="idea.txt", repo_id=REPO)
    assert details(opened.pr_num).conflicting_files == ["idea.txt"]
    assert "idea.txt" in refused(409, api.merge_pull_request, REPO, opened.pr_num)
    api.change_discussion_status(REPO, opened.pr_num, "closed", comment="Outdated")
    assert details(opened.pr_num).status == "closed"


def check_private_repo():
    api.create_repo(f"{REPO}-secret", private=True)
    assert api.create_discussion(f"{REPO}-secret", title="Internal").num == 1
    for client in (other, anyone):
        try:
            list(client.get_repo_discussions(f"{REPO}-secret"))
        except RepositoryNotFoundError:
            continue
        raise AssertionError("a private repo was listed")


failed = {}
for name, check in list(globals().items()):
    if name.startswith("check_"):
        try:
            check()
        except Exception:
            failed[name] = traceback.format_exc()
print(json.dumps(failed))
