"""Repos of the stage: one with a realistic card, code, a table, a picture and a large file; an empty one, a private
one, a gated one, and names of maximum length.
"""

import struct
import zlib
from collections.abc import Mapping

from hubgate.server.access.caller import Caller
from hubgate.server.access.identity import Identity
from hubgate.server.accounts.model import Organization, Person, User
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM, Actor
from hubgate.server.hub.commits.commit import commit
from hubgate.server.hub.commits.model import AddFile, CommitRequest, Content, Delete
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import changes, comments, opening
from hubgate.server.hub.discussions.pull_requests import commit_as_pull_request
from hubgate.server.hub.repos import branches, creation, settings, transfer
from hubgate.server.hub.repos.model import MAIN, Repo, RepoOwner, RepoType
from hubgate.server.hub.repos.settings import SettingsChanges

LONG = "a-repo-with-a-name-of-ninety-six-characters-which-nothing-may-clip-or-push-off-the-edge-of-phones"[:96]
TINY = "/acme/vision-tiny"
EMPTY = "/datasets/ada/empty-yet"
PRIVATE = f"/datasets/ada/{LONG}"
GATED = "/bob/gated-model"
BRANCH = "experiments/larger-input"

_CARD = """---
license: apache-2.0
language: [en, fr]
tags: [vision, image-classification, tiny]
pipeline_tag: image-classification
library_name: transformers
base_model: acme/vision-base
datasets: [acme/pictures]
model-index:
  - name: vision-tiny
    results: [{task: {type: image-classification}, metrics: [{type: accuracy, value: 0.912}]}]
---
# Vision Tiny

A classifier of **5.6 million** parameters that runs on a phone. It was distilled from
[Vision Base](https://models.example.org/vision-base) and is described in [the guide](docs/guide.md).

![Accuracy by epoch](img/curve.png)

## Use it

```python
from transformers import pipeline

classify = pipeline("image-classification", model="acme/vision-tiny")
print(classify("a-picture-with-a-rather-long-name-that-makes-this-line-scroll-on-a-phone.jpg")[0]["label"])
```

## How well it does

| Model | Parameters | Top-1 | Top-5 | Milliseconds on a phone | Milliseconds on a server |
|:------|-----------:|------:|------:|------------------------:|-------------------------:|
| Vision Tiny | 5.6 M | 76.1 | 93.0 | 14 | 1.1 |
| Vision Base | 86 M | 83.4 | 96.5 | 190 | 6.8 |

> Measured once, on one phone. Yours may be slower.

- [x] Photographs
- Drawings, if they are
  1. large and
  2. in colour

Press <kbd>Ctrl</kbd>+<kbd>C</kbd> to stop. See also ![a badge](https://img.example.org/badge.svg).
"""
_CODE = '''"""Reads pictures and says what is on them."""

from pathlib import Path


def label_of(picture: Path, *, threshold: float = 0.5) -> str | None:
    # <b>Not bold</b>: a file is shown as it is.
    scores = classify(picture.read_bytes())
    best = max(scores, key=scores.get, default=None)
    return best if best is not None and scores[best] >= threshold else None  # the most likely one, if it is likely
'''


async def add_repos(repos: Repos, ada: User, bob: User, acme: Organization) -> None:
    org = RepoOwner("org", acme.id, acme.name)
    own, bobs = (RepoOwner("user", user.id, user.name) for user in (ada, bob))
    tiny = await _made(repos, ada, org, "vision-tiny", RepoType.MODEL)
    first = {
        "README.md": _CARD,
        "config.json": '{\n  "hidden_size": 192,\n  "labels": ["cat", "dog"]\n}\n',
        "docs/guide.md": "# Guide\n\nBack to [the card](../README.md).\n",
        "img/curve.png": _picture(),
        "label.py": _CODE,
        "model.safetensors": b"\1\2\3\4" * 50_000,
        "صورة ‮gnp.exe.txt": "a name that turns around\n",
        "a-file-with-a-name-that-goes-on-and-on-and-on-and-on-until-it-has-to-break-somewhere.txt": "x\n",
    }
    await _committed(repos, tiny, ada, "Add the model, its card and a guide", first)
    second = {"config.json": '{\n  "hidden_size": 192,\n  "labels": ["cat", "dog", "<other>"]\n}\n'}
    summary = "Know what is neither a cat nor a dog, and say so in a title that is longer than any list should show"
    await _committed(
        repos, tiny, bob, summary, second, "The label was missing.\n\nSigned-off-by: Bob", gone="docs/guide.md"
    )
    await branches.create_branch(repos, tiny, ada, BRANCH, None, empty=False, overwrite=False)
    await _committed(repos, tiny, bob, "The guide again", {"docs/guide.md": first["docs/guide.md"]})
    await branches.create_tag(repos, tiny, ada, "v1.0", "main", "")
    await _discussed(repos, tiny, ada, bob)
    await _made(repos, ada, own, "empty-yet", RepoType.DATASET)
    long = await _made(repos, ada, own, LONG, RepoType.DATASET, private=True)
    await _committed(repos, long, ada, "Rows", {"data/train.csv": "a,b\n1,2\n"})
    await _made(repos, ada, own, "demo", RepoType.SPACE)
    gated = await _made(repos, bob, bobs, "gated-model", RepoType.MODEL)
    await _committed(repos, gated, bob, "Files", {"README.md": "# Ask first", "notes.txt": "for those inside\n"})
    await settings.configure(repos, gated, SettingsChanges(gated="manual"), SYSTEM)
    draft = await _made(repos, ada, org, LONG, RepoType.MODEL)
    draft = await transfer.move(repos, draft, org, "vision-draft", SYSTEM)
    await transfer.move(repos, draft, bobs, "vision-draft", Actor(ada.name, ada.id), leave_redirect=True)


async def _discussed(repos: Repos, repo: Repo, ada: User, bob: User) -> None:
    """Discussion 1 with a long title and all kinds of entries, and pull request 2 with a conflict."""
    ada_caller, bob_caller = _caller(ada, repo), _caller(bob)
    title = "Which pictures was this trained on, and may a company use it for a product that is sold to others?"
    asked = await opening.open_discussion(
        repos, repo, bob_caller, title, "The card names `acme/pictures`: **all** of it?"
    )
    answer = await comments.add(repos, repo, asked, ada_caller, "Yes, see [the config](config.json).\n\n- cats\n- dogs")
    await comments.react(repos, repo, asked, answer.entries[0], bob_caller, "👍")
    await comments.react(repos, repo, asked, answer.entries[0], ada_caller, "🎉")
    spam = await comments.add(repos, repo, asked, bob_caller, "Buy now")
    await comments.hide(repos, repo, asked, spam.entries[0], ada_caller)
    await changes.set_title(repos, repo, asked, ada_caller, "Which pictures was this trained on?")
    await changes.set_pinned(repos, repo, asked, pinned=True)
    config = b'{\n  "hidden_size": 256,\n  "labels": ["cat", "dog"]\n}\n'
    request = CommitRequest("A larger model", "", None, [AddFile("config.json", Content(len(config), config))])
    await commit_as_pull_request(repos, repo, bob_caller, MAIN, request)
    await _committed(repos, repo, ada, "Smaller", {"config.json": '{\n  "hidden_size": 96\n}\n'})


def _caller(user: User, of: Repo | None = None) -> Caller:
    """A signed-in user; with `of`, an admin of the organization that owns the repo."""
    roles = {of.owner_id: Role.ADMIN} if of else {}
    return Caller(Identity.session(user.id, roles), Person(user, (), {}))


async def _made(
    repos: Repos, user: User, owner: RepoOwner, name: str, kind: RepoType, *, private: bool = False
) -> Repo:
    wanted = creation.NewRepo(kind, name, private, sdk="static" if kind is RepoType.SPACE else "")
    return await creation.create(repos, user, owner, wanted, SYSTEM)


async def _committed(
    repos: Repos,
    repo: Repo,
    user: User,
    summary: str,
    files: Mapping[str, str | bytes],
    description: str = "",
    gone: str = "",
) -> None:
    contents = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    added = [AddFile(path, Content(len(text), text)) for path, text in contents.items()]
    removed = [Delete(gone, file=True, folder=False)] if gone else []
    await commit(repos, repo, _caller(user), MAIN, CommitRequest(summary, description, None, [*added, *removed]))


def _picture() -> bytes:
    """A curve that rises, 480 by 200."""
    rows = []
    for y in range(200):
        row = bytearray(b"\0")
        for x in range(480):
            height = 180 - int(160 * (1 - 0.985**x))
            row += b"\x0b\x5f\xa8" if abs(y - height) < 3 else b"\xf6\xf7\xf5"
        rows.append(bytes(row))
    head = struct.pack(">IIBBBBB", 480, 200, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
