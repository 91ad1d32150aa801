"""Creating a repo: a folder with the first commit, then one transaction with its rows and its event."""

from collections.abc import Sequence

import msgspec

from hubgate.server import failpoint
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import Actor
from hubgate.server.audit.model import Kind as Entry
from hubgate.server.errors import Conflict
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.commits import initial_files
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import FilesByPath, write_first_commit
from hubgate.server.hub.lfs.storing import StoredFile
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.audit import record_change
from hubgate.server.hub.repos.authors import author_of
from hubgate.server.hub.repos.card import card_at
from hubgate.server.hub.repos.defaults import GIT_ATTRIBUTES, readme_with
from hubgate.server.hub.repos.locks import lock_owner
from hubgate.server.hub.repos.model import MAIN, UNLINK_FIRST, Owner, Repo, RepoType, check_repo_name
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx

FIRST_COMMIT = "initial commit"


class NewRepo(msgspec.Struct, frozen=True):
    type: RepoType
    name: str
    private: bool = False
    sdk: str = ""
    license: str = ""
    # The app that creates the repo, if any.
    client_id: str | None = None


class NameTaken(Conflict):
    """The name is taken by another repo or by a redirect."""

    def __init__(self, wanted: NewRepo, owner: Owner, *, is_redirect: bool = False) -> None:
        text = f"You already created this {wanted.type.value} repo: {owner.name}/{wanted.name}"
        super().__init__(f"{owner.name}/{wanted.name} is taken: {UNLINK_FIRST}" if is_redirect else text)
        self.is_redirect = is_redirect
        self.path = f"/{wanted.type.folder}{owner.name}/{wanted.name}"


async def create(
    repos: Repos, user: User, owner: Owner, wanted: NewRepo, actor: Actor, files: FilesByPath | None = None
) -> Repo:
    check_repo_name(wanted.name)
    if await store.named(repos.db, wanted.type.value, owner.name, wanted.name):
        is_redirect = await store.is_redirect(repos.db, owner.id, wanted.type.value, wanted.name)
        raise NameTaken(wanted, owner, is_redirect=is_redirect)
    now = repos.clock()
    repo_id = new_id(now)
    try:
        repo, large_files = await _write_folder(repos, user, owner, wanted, files or {}, repo_id, now)
        failpoint.hit("repo-before-create")
        return await repos.db.write(lambda tx: _insert(tx, repos, repo, wanted, large_files, actor))
    except BaseException:
        # If this check fails too, the folder stays until housekeeping finds that it has no row.
        if not await store.exists(repos.db, repo_id):
            await in_thread(repos.folders.remove, repo_id)
        raise


async def _write_folder(
    repos: Repos, user: User, owner: Owner, wanted: NewRepo, files: FilesByPath, repo_id: str, now: int
) -> tuple[Repo, list[StoredFile]]:
    folder = await in_thread(repos.folders.make, repo_id)
    content = {".gitattributes": GIT_ATTRIBUTES.encode()}
    fields = _card_fields(wanted)
    if fields:
        content["README.md"] = readme_with(fields).encode()
    author = author_of(user, repos.base_url)
    in_git, large_files = await initial_files.write_initial_files(repos, {**content, **files})
    head = await write_first_commit(folder, in_git, FIRST_COMMIT, author, now)
    card = await card_at(folder, head, wanted.type.value)
    repo = Repo(
        id=repo_id,
        type=wanted.type.value,
        owner_kind=owner.kind,
        owner_id=owner.id,
        owner_name=owner.name,
        name=wanted.name,
        private=int(wanted.private),
        gated="",
        discussions_disabled=0,
        sdk=wanted.sdk,
        creator_id=user.id,
        creator_client=wanted.client_id,
        head_sha=head,
        card=card.data_json,
        tags=card.tags_json,
        created_at=now,
        updated_at=now,
        generation=1,
        last_seq=1,
    )
    return repo, large_files


def _card_fields(wanted: NewRepo) -> dict[str, str]:
    """The fields of the initial card. Existing clients expect that a new space has a card."""
    of_space = {"title": wanted.name, "sdk": wanted.sdk} if wanted.type is RepoType.SPACE else {}
    return {name: text for name, text in {**of_space, "license": wanted.license}.items() if text}


async def _insert(
    tx: Tx, repos: Repos, repo: Repo, wanted: NewRepo, large_files: Sequence[StoredFile], actor: Actor
) -> Repo:
    owner = await lock_owner(tx, repo.owner)
    # The owner may have been renamed since the folder was created: no event would ever contain the new name.
    repo = msgspec.structs.replace(repo, owner_name=owner.name)
    await store.add(tx, repo)
    if not await store.claim_name(tx, repo.id, repo.owner_id, repo.type, repo.name):
        raise NameTaken(wanted, repo.owner)
    await store.move_ref(tx, repo.id, MAIN, None, repo.head_sha, commits=1)
    for file in large_files:
        await file.link(tx, repo.id, repo.created_at)
    await outbox.record(tx, Kind.REPO_CREATE, repo.snapshot, 1, {}, repos.base_url, repo.created_at)
    visibility = "private" if repo.private else "public"
    text = f"created the {visibility} {repo.label}"
    await record_change(tx, repo.owner, Entry.REPO_CREATE, repo, text, actor, repo.created_at, visibility=visibility)
    return repo
