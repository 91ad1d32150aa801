"""Creating a repo: a folder with the first commit, then one transaction with its rows and its event."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from hubgate.server import failpoint
from hubgate.server.accounts.account_locks import require_current_credentials
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.hub.commits.attribute_files import LOSSLESS, attributes_too_large
from hubgate.server.hub.commits.attributes import ATTRIBUTES_FILE, Attributes, with_lines_for
from hubgate.server.hub.commits.commit import is_large
from hubgate.server.hub.commits.model import Content
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.objects import pointer_text, read_pointer
from hubgate.server.hub.git.paths import GITMODULES_FILE, check_gitmodules
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import Author, FilesByPath, write_first_commit
from hubgate.server.hub.lfs.stored_file import StoredFile, store_file
from hubgate.server.hub.quotas.quotas import check_file
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.card import card_at
from hubgate.server.hub.repos.model import MAIN, UNLINK_FIRST, Card, Repo, RepoOwner, RepoType, check_repo_name
from hubgate.server.hub.repos.search_documents import document_of
from hubgate.server.hub.repos.transactions import lock_owner, record_audit
from hubgate.server.ids import new_id
from hubgate.server.search import store as search_store
from hubgate.server.search.store import Document
from hubgate.server.storage.database import Tx

# Extensions of files that are usually large; they are stored as large files regardless of their size.
_LARGE_EXTENSIONS = """
    7z arrow bin bz2 ckpt ftz gz h5 joblib lfs.* mlmodel model msgpack npy npz onnx ot parquet pb pickle pkl pt pth rar
    safetensors tar tar.* tflite tgz wasm xz zip zst
""".split()  # noqa: SIM905 -- a paragraph reads better than forty lines

_PATTERNS = [*(f"*.{ending}" for ending in _LARGE_EXTENSIONS), "saved_model/**/*", "*tfevents*"]

GIT_ATTRIBUTES = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in _PATTERNS)
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

    def __init__(self, new_repo: NewRepo, owner: RepoOwner, *, is_redirect: bool = False) -> None:
        text = f"You already created this {new_repo.type.value} repo: {owner.name}/{new_repo.name}"
        super().__init__(f"{owner.name}/{new_repo.name} is taken: {UNLINK_FIRST}" if is_redirect else text)
        self.is_redirect = is_redirect
        self.path = f"/{new_repo.type.url_prefix}{owner.name}/{new_repo.name}"


# Called in the transaction that creates a repo.
OnCreated = Callable[[Tx, Repo], Awaitable[None]]


async def _nothing_more(_: Tx, __: Repo) -> None:
    pass


async def create(
    repos: Repos,
    user: User,
    owner: RepoOwner,
    new_repo: NewRepo,
    actor: Actor,
    files: FilesByPath | None = None,
    on_created: OnCreated = _nothing_more,
) -> Repo:
    check_repo_name(new_repo.name)
    if await store.named(repos.db, new_repo.type.value, owner.name, new_repo.name):
        is_redirect = await store.is_redirect(repos.db, owner.id, new_repo.type.value, new_repo.name)
        raise NameTaken(new_repo, owner, is_redirect=is_redirect)
    now = repos.clock()
    repo_id = new_id(now)
    try:
        repo, card, large_files = await _write_folder(repos, user, owner, new_repo, files or {}, repo_id, now)
        document = document_of(repo, card)
        failpoint.hit("repo-before-create")
        return await repos.db.write(
            lambda tx: _insert(tx, repos, repo, document, new_repo, large_files, actor, on_created)
        )
    except BaseException:
        # If this check fails too, the folder stays until housekeeping finds that it has no row.
        if not await store.exists(repos.db, repo_id):
            await in_thread(repos.folders.remove, repo_id)
        raise


async def _write_folder(
    repos: Repos, user: User, owner: RepoOwner, new_repo: NewRepo, files: FilesByPath, repo_id: str, now: int
) -> tuple[Repo, Card, list[StoredFile]]:
    folder = await in_thread(repos.folders.create, repo_id)
    content = {ATTRIBUTES_FILE: GIT_ATTRIBUTES.encode()}
    fields = _card_fields(new_repo)
    if fields:
        content["README.md"] = _readme_with(fields).encode()
    author = Author.of_user(user.name, repos.base_url)
    in_git, large_files = await _write_initial_files(repos, {**content, **files})
    head = await write_first_commit(folder, in_git, FIRST_COMMIT, author, now)
    card = await card_at(folder, head, new_repo.type.value)
    repo = Repo(
        id=repo_id,
        type=new_repo.type.value,
        owner_kind=owner.kind,
        owner_id=owner.id,
        owner_name=owner.name,
        name=new_repo.name,
        private=int(new_repo.private),
        gated="",
        discussions_disabled=0,
        sdk=new_repo.sdk,
        creator_id=user.id,
        creator_client=new_repo.client_id,
        head_sha=head,
        card=card.data_json,
        tags=card.tags_json,
        created_at=now,
        updated_at=now,
        generation=1,
        last_seq=1,
    )
    return repo, card, large_files


def _card_fields(new_repo: NewRepo) -> dict[str, str]:
    """The fields of the initial card. Existing clients expect that a new space has a card."""
    of_space = {"title": new_repo.name, "sdk": new_repo.sdk} if new_repo.type is RepoType.SPACE else {}
    return {name: text for name, text in {**of_space, "license": new_repo.license}.items() if text}


def _readme_with(fields: Mapping[str, str]) -> str:
    """README.md with these fields as front matter. Values are quoted, since a name may look like a number; the license
    is not, because tools look for it unquoted.
    """
    lines = (f"{field}: {text}\n" if field == "license" else f'{field}: "{text}"\n' for field, text in fields.items())
    return "".join(["---\n", *lines, "---\n"])


async def _insert(
    tx: Tx,
    repos: Repos,
    repo: Repo,
    document: Document,
    new_repo: NewRepo,
    large_files: Sequence[StoredFile],
    actor: Actor,
    on_created: OnCreated,
) -> Repo:
    owner = await lock_owner(tx, repo.owner)
    # A user whose account was disabled since the request began must not leave a Space behind that runs.
    await require_current_credentials(tx, actor.user_id, actor.credentials_version)
    # The owner may have been renamed since the folder was created. If the event had the old name, no later event would
    # announce the new one.
    repo = msgspec.structs.replace(repo, owner_name=owner.name)
    await store.add(tx, repo)
    if not await store.claim_name(tx, repo.id, repo.owner_id, repo.type, repo.name):
        raise NameTaken(new_repo, repo.owner)
    await store.move_ref(tx, repo.id, MAIN, None, repo.head_sha, commits=1)
    for file in large_files:
        await check_file(tx, repos, repo.id, file.oid, file.size)
        await file.link(tx, repo.id, repo.created_at)
    if new_repo.type is RepoType.SPACE:
        await repos.on_space_content(tx, repo.id, repo.card, repo.created_at)
    await search_store.put(tx, document)
    await on_created(tx, repo)
    await outbox.record(tx, Kind.REPO_CREATE, repo.snapshot, 1, {}, repos.base_url, repo.created_at)
    visibility = "private" if repo.private else "public"
    text = f"created the {visibility} {repo.label}"
    await record_audit(tx, repo.owner, EntryType.REPO_CREATE, repo, text, actor, repo.created_at, visibility=visibility)
    return repo


async def _write_initial_files(repos: Repos, files: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[StoredFile]]:
    """Store the large files among the initial files. Return the content for git, and the large files to link to the
    repo once it exists.
    """
    rules = files.get(ATTRIBUTES_FILE, b"").decode(errors=LOSSLESS)
    seconds = repos.limits.matching_seconds
    named_large = await in_thread(Attributes([("", rules)]).large_among, list(files), seconds)
    in_git, large_files, undeclared = dict[str, bytes](), list[StoredFile](), list[str]()
    for path, content in files.items():
        _check_initial_file(path, content)
        by_name = path in named_large
        if not is_large(len(content), by_name=by_name):
            in_git[path] = content
            continue
        if path == ATTRIBUTES_FILE:
            raise attributes_too_large()
        large_files.append(await store_file(repos, Content(len(content), content)))
        in_git[path] = pointer_text(large_files[-1].oid, len(content))
        if not by_name:
            undeclared.append(path)
    if undeclared:
        in_git[ATTRIBUTES_FILE] = with_lines_for(files.get(ATTRIBUTES_FILE, b""), undeclared)
    return in_git, large_files


def _check_initial_file(path: str, content: bytes) -> None:
    pointer = read_pointer(content)
    if pointer is not None:
        # Knowing a hash must not grant access to a file, and no file has been uploaded to a new repo.
        raise Unprocessable(
            f"{path[:200]!r} is a pointer to the large file {pointer.oid}. Create the repo, then upload the file."
        )
    if path.lower() == GITMODULES_FILE:
        check_gitmodules(content)
