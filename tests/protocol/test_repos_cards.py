"""The front matter of a README: what is checked before a commit, and that no commit fails because of it."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.git.threads import in_text_thread, in_thread
from hubgate.server.jobs.caller import JobCaller, current_job_caller

pytestmark = pytest.mark.one_engine

HOSTILE = {
    "half a character": 'x: "\\ud800"',
    "half a character as a name": '"\\ud800": 1',
    "NUL": '"a\\0b": "c\\0d"',
    "a control character": "x: \x07",
    "a number without end": "x: " + "9" * 5000,
    "a number without end, in hex": "x: 0x" + "f" * 20_000,
    "a number without end as a name": "? 0x" + "f" * 20_000 + "\n: 1",
    "sixties": "x: " + ":".join(["59"] * 5000),
    "an empty number": 'x: !!int ""',
    "an odd truth": "x: !!bool perhaps",
    "an odd time": "x: !!timestamp never",
    "an odd float": "x: !!float x",
    "odd base64": "x: !!binary é",
    "infinity": "x: [.inf, -.inf, .nan]",
    "a list as a name": "? [a]\n: b",
    "an object": "x: !!python/object/apply:os.system [ls]",
    "an alias": "a: &a [1]\nb: *a",
    "nested": "x: " + "[" * 3000 + "]" * 3000,
    "many values": "x: [" + "1," * 20_000 + "]",
    "no names": "- a\n- b",
    "a text": "hello",
    "two documents": "a: 1\n...\nb: 2",
    "tabs": "a:\n\t- b",
    "large": "x: " + "y" * 70_000,
}


@pytest.mark.parametrize("as_file", [False, True])
def test_hostile_front_matter_breaks_neither_commit_nor_page(hub: RunningHub, as_file: bool) -> None:
    """Whether or not it becomes a card, the commit succeeds and the repo can be shown."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for name, text in HOSTILE.items():
            readme = f"---\n{text}\n---\n# Tiny\n"
            if as_file:
                create_commit(ada, "ada/tiny", {"README.md": readme.encode()})
                for address in ("/api/models/ada/tiny", "/api/models?full=1", "/api/models/ada/tiny/events?limit=1000"):
                    assert ada.get(address).status_code == 200, (name, address)
            else:
                answer = ada.post("/api/validate-yaml", json={"content": readme, "repoType": "model"})
                assert answer.status_code in (200, 400), name
                assert all(remark["message"] for remark in answer.json()["errors"]), name


def test_validation_explains_errors(hub: RunningHub) -> None:
    with api(hub) as anyone:

        def validate(content: str) -> tuple[int, int, int]:
            answer = anyone.post("/api/validate-yaml", json={"content": content, "repoType": "model"})
            body = answer.json()
            return answer.status_code, len(body["errors"]), len(body["warnings"])

        assert validate("---\nlicense: mit\ntags: [a, b]\n---\n# x") == (200, 0, 0)
        assert validate("\ufeff---\r\nlicense: mit\r\n---\r\n# x") == (200, 0, 0)
        assert validate("---\n---\n") == (200, 0, 0)
        for without in ("# x", "", "---\nno end"):
            assert validate(without) == (200, 0, 1)
        assert validate("---\nmodel-index: foo\n---\n") == (400, 1, 0)
        assert validate("---\nlicense: {a: b}\ntags: x\n---\n") == (400, 2, 0)
        assert validate("---\na: [\n---\n") == (400, 1, 0)
        assert validate("\n---\na: [\n---\n") == (400, 1, 0)
        assert validate("\n \r\n---\nlicense: mit\n---\n") == (200, 0, 0)
        for known in ("[mit, other]", "llama3.1", ""):
            assert validate(f"---\nlicense: {known}\n---\n") == (200, 0, 0), known
        for unknown in ("invalid", "MIT", "[mit, invalid]", "[1]"):
            assert validate(f"---\nlicense: {unknown}\n---\n") == (400, 1, 0), unknown
        for body in ({}, {"content": 1}, {"content": "a\0b"}):
            refused = anyone.post("/api/validate-yaml", json=body)
            assert (refused.status_code, set(refused.json())) == (422, {"error"})
        assert anyone.post("/api/validate-yaml", content=b"{").json()["error"]


SLOW = {
    "brackets": ("a: " + "[" * 3000 + "]" * 3000, "nested more than 50 levels deep"),
    "braces": ("a: " + "{" * 60_000, "nested more than 50 levels deep"),
    "steps": ("".join(" " * depth + "a:\n" for depth in range(300)), "nested more than 50 levels deep"),
    "long tags": ("%TAG !a! tag:" + "x" * 30_000 + "\n--- [" + "!a!x x," * 4_900 + "]", "directive"),
    "sixties": ("a: " + "1:" * 30_000 + "1", "number with too many parts"),
}


@pytest.mark.parametrize("name", SLOW)
def test_slow_front_matter_is_rejected(sqlite_hub: RunningHub, name: str) -> None:
    text, reason = SLOW[name]
    with api(sqlite_hub) as anyone:
        answer = anyone.post("/api/validate-yaml", json={"content": f"---\n{text}\n---\n", "repoType": "model"})
        assert answer.status_code == 400
        assert reason in answer.json()["errors"][0]["message"]
        nested = "---\na: " + "[" * 40 + "]" * 40 + "\nlength: 1:59:59\n---\n"
        assert anyone.post("/api/validate-yaml", json={"content": nested, "repoType": "model"}).status_code == 200


@contextmanager
def all_threads_busy(hub: RunningHub, in_thread: Callable[..., Awaitable[bool]], threads: int) -> Iterator[None]:
    """Keeps every thread of a kind busy, by several callers: one caller does not get all of them."""
    begun, done = threading.Barrier(threads + 1, timeout=60), threading.Event()

    def work() -> bool:
        begun.wait()
        return done.wait(60)

    async def charged(number: int) -> bool:
        current_job_caller.set(JobCaller(str(number)))
        return await in_thread(work)

    with ThreadPoolExecutor(threads) as pool:
        held = [pool.submit(hub.call, lambda _, number=number: charged(number)) for number in range(threads)]  # type: ignore[misc]
        try:
            begun.wait()
            yield
        finally:
            done.set()
        assert all(one.result(60) for one in held)


def test_text_and_file_work_do_not_wait_for_each_other(sqlite_hub: RunningHub) -> None:
    """Anyone may have YAML checked and cards rendered: such requests must not delay downloads and commits."""
    readme = "---\nlicense: mit\n---\n# Tiny"
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        with all_threads_busy(sqlite_hub, in_text_thread, 2):
            create_commit(ada, "ada/tiny", {"README.md": readme.encode()})
            assert ada.get("/api/models/ada/tiny/tree/main").status_code == 200
        with all_threads_busy(sqlite_hub, in_thread, 8):
            assert ada.post("/api/validate-yaml", json={"content": readme, "repoType": "model"}).status_code == 200


def test_repos_are_found_by_tags_of_their_card(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        tags = '[PyTorch, "a\\"b", "50%", a_b, é]'
        card = f"---\nlicense: mit\ntags: {tags}\nlanguage: [en]\npipeline_tag: fill-mask\n---\n"
        create_commit(ada, "ada/tiny", {"README.md": card.encode()})
        info = ada.get("/api/models/ada/tiny").json()
        assert info["tags"] == ["PyTorch", 'a"b', "50%", "a_b", "é", "en", "fill-mask", "license:mit"]
        assert (info["pipeline_tag"], info["cardData"]["license"]) == ("fill-mask", "mit")

        def found(*tags: str) -> bool:
            return [one["id"] for one in ada.get("/api/models", params={"filter": tags}).json()] == ["ada/tiny"]

        for tag in info["tags"]:
            assert found(tag), tag
        assert found("PyTorch", "en")
        assert found("PyTorch,en")
        # Whole tags, exactly as written, on both engines.
        for tag in ("pytorch", "Py", "50", "50_", "aXb", "mit", "PyTorch,other", '"', 'PyTorch","a'):
            assert not found(tag), tag


def test_dataset_tags_have_a_prefix(hub: RunningHub) -> None:
    """As `list_datasets(language=..., task_categories=...)` requests them."""
    card = """---
license: mit
language: [en, de]
task_categories: [text-classification]
task_ids: sentiment-analysis
size_categories: 1K<n<10K
multilinguality: monolingual
language_creators: [found]
annotations_creators: [expert-generated]
source_datasets: [original]
tags: [mine]
---
"""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "rows", "dataset")
        create_commit(ada, "ada/rows", {"README.md": card.encode()}, repo_type="dataset")
        info = ada.get("/api/datasets/ada/rows").json()
        assert set(info["tags"]) == {
            "mine",
            "license:mit",
            "language:en",
            "language:de",
            "task_categories:text-classification",
            "task_ids:sentiment-analysis",
            "size_categories:1K<n<10K",
            "multilinguality:monolingual",
            "language_creators:found",
            "annotations_creators:expert-generated",
            "source_datasets:original",
        }
        for tag in info["tags"]:
            assert [one["id"] for one in ada.get("/api/datasets", params={"filter": tag}).json()] == ["ada/rows"], tag
        assert ada.get("/api/datasets", params={"filter": ["language:en", "language:fr"]}).json() == []
