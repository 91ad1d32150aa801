"""A pull request that a commit makes for itself."""

from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.commits.committing import check_parent, landed, written
from hubgate.server.hub.commits.model import Committed, Request
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos import counting
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.hub.repos.refs import moved_in
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx

LONGEST_TITLE = 200


async def commit_as_pull_request(repos: Repos, repo: Repo, user: User, base: str, request: Request) -> Committed:
    """On top of what the branch `base` is now. Its number, its row, its ref and the event come to be together."""
    head = await repo_store.ref(repos.db, repo.id, base)
    if head is None or not base.startswith("refs/heads/"):
        raise NotFound(f"Invalid rev id: {base}", code="RevisionNotFound")
    check_parent(request, head)
    on_disk = await landed(repos, repo, head, request.operations)
    sha = await written(repos, repo, user, head, request, on_disk)
    now = repos.clock()
    counts = await counting.counted(repos, repo, [RefChange(base, head, sha)])

    async def unit(tx: Tx) -> int:
        num = await repo_store.next_discussion(tx, repo.id)
        if num is None:
            raise NotFound(REPO_GONE, code="RepoNotFound")
        discussion = Discussion(
            id=new_id(now),
            repo_id=repo.id,
            num=num,
            title=request.summary[:LONGEST_TITLE],
            description=request.description,
            status="open",
            base=base,
            author_id=user.id,
            created_at=now,
        )
        await store.add(tx, discussion)
        await moved_in(tx, repos, repo, [RefChange(discussion.ref, None, sha)], None, now, counts)
        return num

    return Committed(sha, await repos.db.write(unit))
