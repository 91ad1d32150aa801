"""The initial files of a repo: large files are stored outside git from the first commit on."""

from collections.abc import Mapping

from hubgate.server.errors import Unprocessable
from hubgate.server.hub.commits.attributes import NAME, Attributes, announcing
from hubgate.server.hub.commits.commit import UNCHANGED, is_large, is_large_path
from hubgate.server.hub.commits.model import Content
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.modules import MODULES, check_modules
from hubgate.server.hub.git.objects import pointer_text, read_pointer
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.lfs.storing import StoredFile, store_file


async def write_initial_files(repos: Repos, files: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[StoredFile]]:
    """The content for git, and the large files to link to the repo once it exists."""
    rules = files.get(NAME, b"").decode(errors=UNCHANGED)
    seconds = repos.limits.judging_seconds
    named_large = await in_thread(Attributes([("", rules)]).large_among, list(files), seconds)
    in_git, large_files, unannounced = dict[str, bytes](), list[StoredFile](), list[str]()
    for path, content in files.items():
        _check(path, content)
        by_name = path in named_large
        if not is_large(len(content), by_name=by_name):
            in_git[path] = content
            continue
        if path == NAME:
            raise is_large_path()
        large_files.append(await store_file(repos, Content(len(content), content)))
        in_git[path] = pointer_text(large_files[-1].oid, len(content))
        if not by_name:
            unannounced.append(path)
    if unannounced:
        in_git[NAME] = announcing(files.get(NAME, b""), unannounced)
    return in_git, large_files


def _check(path: str, content: bytes) -> None:
    pointer = read_pointer(content)
    if pointer is not None:
        # Knowing a hash must not give access to a file, and a new repo has not been sent any.
        raise Unprocessable(f"{path[:200]!r} stands for the large file {pointer.oid}. Make the repo, then upload it.")
    if path.lower() == MODULES:
        check_modules(content)
