"""The pages of one repo over HTTP: card, files, one file, history; who may see them, and how hostile content is
shown.
"""

import html
import re
from html import unescape

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

NOTHING = "Nothing here, or you don't have access. Another account may see more."
README = """---
license: mit
tags: [vision, tiny]
---
# Tiny

See [the config](config.json), [its first line](config.json#L1) and ![curve](img/curve.png).

<script>alert(1)</script>
"""
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def tiny(hub: RunningHub) -> str:
    """Ada's public model with all kinds of files."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "tiny")
        files = {
            "README.md": README.encode(),
            "config.json": b'{"a": 1}\n',
            "page.html": b"<script>alert(document.cookie)</script>",
            "docs/guide.md": b"# Guide\n\n[up](../README.md)\n",
            "img/curve.png": PNG,
            "weights.safetensors": b"\1\2\3" * 100,
            "notes é?.txt": b"first\nsecond\n",
        }
        create_commit(client, "ada/tiny", files, summary="Add <everything>")
    return "/ada/tiny"


def main_of(response: httpx.Response) -> str:
    assert response.status_code == 200, (response.status_code, response.headers.get("location"))
    return response.text.partition("<main")[2].partition("</main>")[0]


def test_card_page_shows_the_readme_and_its_metadata(hub: RunningHub, tiny: str) -> None:
    with hub.client() as client:
        main = main_of(client.get(tiny))
        assert 'id="L1"' in main_of(client.get(f"{tiny}/blob/main/config.json"))
    assert '<h2 id="user-content-tiny">Tiny</h2>' in main
    assert 'href="/ada/tiny/blob/main/config.json"' in main
    assert 'href="/ada/tiny/blob/main/config.json#L1"' in main
    assert 'src="/ada/tiny/resolve/main/img/curve.png"' in main
    assert "alert(1)" not in main
    assert "<dt><bdi>license</bdi></dt><dd><bdi>mit</bdi></dd>" in main
    assert 'href="/models?filter=vision"' in main
    assert f"export HF_ENDPOINT={hub.url}\nhf download ada/tiny" in main
    assert "Public" in main
    assert "/settings" not in main


def test_empty_repo_says_how_to_fill_it(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "words", "dataset", license="mit")
    with browser_of(hub, ada) as owner, hub.client() as visitor:
        own, other = main_of(owner.get("/datasets/ada/words")), main_of(visitor.get("/datasets/ada/words"))
    assert f"export HF_ENDPOINT={hub.url}\nhf auth login\nhf upload ada/words . --repo-type dataset" in own
    assert f"git clone {hub.url}/datasets/ada/words" in own
    assert "hf upload" not in other
    assert "Nothing here yet." in other


def test_folder_page_lists_files(hub: RunningHub, tiny: str) -> None:
    with hub.client() as client:
        main = main_of(client.get(f"{tiny}/tree/main"))
        inside = main_of(client.get(f"{tiny}/tree/main/docs"))
    names = [".gitattributes", "README.md", "config.json", "notes é?.txt", "page.html", "weights.safetensors"]
    places = [main.index(f"<bdi>{name}</bdi>") for name in ["docs", "img", *names]]
    assert places == sorted(places), "folders first, then files by name"
    assert 'href="/ada/tiny/blob/main/notes%20%C3%A9%3F.txt"' in main
    assert 'href="/ada/tiny/resolve/main/weights.safetensors" download' in main
    assert main.count(">LFS</span>") == 1
    assert "300 bytes" in main
    assert "Add &lt;everything&gt;" in main
    assert '<a href="/ada/tiny/tree/main"><bdi>tiny</bdi></a>' in inside
    assert 'href="/ada/tiny/blob/main/docs/guide.md"' in inside


def test_large_folder_has_pages(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "many")
        create_commit(client, "ada/many", {f"a/{number:03}.txt": b"x" for number in range(230)})
        pages = [main_of(client.get(f"/ada/many/tree/main/a?page={number}")) for number in (1, 2, 3)]
        assert [page.count("/blob/main/a/") for page in pages] == [100, 100, 30]
        assert "230 in all" in pages[0]
        assert 'href="?page=2"' in pages[0]
        assert 'href="?page=4"' not in pages[2]
        for bad in ("4", "0", "x", "-1", "9" * 5000):
            assert client.get(f"/ada/many/tree/main/a?page={bad}").status_code == 404


def test_text_file_is_shown_escaped(hub: RunningHub, tiny: str) -> None:
    with hub.client() as client:
        main = main_of(client.get(f"{tiny}/blob/main/notes%20%C3%A9%3F.txt"))
        hostile = main_of(client.get(f"{tiny}/blob/main/page.html"))
    assert '<span id="L1">first\n</span><span id="L2">second\n</span>' in main
    assert "13 bytes · 2 lines" in main
    assert "&lt;script&gt;alert(document.cookie)&lt;/script&gt;" in hostile
    assert "<script>" not in hostile


def test_markdown_images_and_large_files_are_shown(hub: RunningHub, tiny: str) -> None:
    with hub.client() as client:
        guide = main_of(client.get(f"{tiny}/blob/main/docs/guide.md"))
        source = main_of(client.get(f"{tiny}/blob/main/docs/guide.md?plain=1"))
        image = main_of(client.get(f"{tiny}/blob/main/img/curve.png"))
        large = main_of(client.get(f"{tiny}/blob/main/weights.safetensors"))
        shown = client.get(f"{tiny}/resolve/main/img/curve.png")
    assert 'href="/ada/tiny/blob/main/README.md"' in guide
    assert '<span id="L1"># Guide\n</span>' in source
    assert '<img src="/ada/tiny/resolve/main/img/curve.png" alt="curve.png">' in image
    assert shown.content == PNG
    assert shown.headers["content-type"] == "image/png"
    assert "badge" in large
    assert "SHA-256" in large
    assert "300 bytes; the pointer is" in large


def test_direction_marks_are_spelled_out_and_binary_files_not_shown(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "trick")
        files = {"a.py": "x = '\u202e'\n".encode(), "b.bin2": b"\0\1", "c.txt": b"", "d.txt": b"\xff\xfe"}
        create_commit(client, "ada/trick", files)
        trick = client.get("/ada/trick/blob/main/a.py").text
        assert "\u202e" not in trick
        assert "[RIGHT-TO-LEFT OVERRIDE]" in trick
        assert "Not text." in client.get("/ada/trick/blob/main/b.bin2").text
        assert "Empty." in client.get("/ada/trick/blob/main/c.txt").text
        assert "Not text." in client.get("/ada/trick/blob/main/d.txt").text


def test_too_large_file_is_not_shown(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "big")
        create_commit(client, "ada/big", {"a.txt": b"a" * 300_000, "b.txt": b"\n" * 6000, "README.md": b"[" * 90_000})
        assert "Too large to show here." in client.get("/ada/big/blob/main/a.txt").text
        assert "too many to show here" in client.get("/ada/big/blob/main/b.txt").text
        assert "[[[[" in main_of(client.get("/ada/big"))


def test_history_and_commits_are_shown(hub: RunningHub, tiny: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as client:
        create_repo(client, "steps")
        create_commit(client, "bob/steps", {"a.txt": b"one\ntwo\nthree\n", "b.bin": b"\0" * 9}, summary="First <b>")
        sha = create_commit(
            client, "bob/steps", {"a.txt": b"one\n2 & <i>\nthree\n"}, summary="Second", delete=["b.bin"]
        )
        history = main_of(client.get("/bob/steps/commits/main"))
        one = main_of(client.get(f"/bob/steps/commit/{sha}"))
        short = client.get(f"/bob/steps/commit/{sha[:8]}")
        first = main_of(client.get(f"/bob/steps/commits/{sha}?page=1"))
    assert history.index("Second") < history.index("First &lt;b&gt;") < history.index("initial commit")
    assert "2 files changed" in one
    assert "<del>-two\n</del>" in one
    assert "<ins>+2 &amp; &lt;i&gt;\n</ins>" in one
    assert "A large file, stored outside git." in one
    assert "Deleted" in one
    assert short.status_code == 200
    assert "Second" in first


def test_history_has_pages(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "long")
        for number in range(55):
            create_commit(client, "ada/long", {"a.txt": b"%d" % number}, summary=f"Step {number}.")
        first, second = (main_of(client.get(f"/ada/long/commits/main?page={page}")) for page in (1, 2))
        assert (first.count("Step "), second.count("Step ")) == (50, 5)
        (older,) = re.findall(r'href="(\?page=2&amp;cursor=[^"]+)"', first)
        followed = main_of(client.get(f"/ada/long/commits/main{html.unescape(older)}"))
        assert followed.count("Step ") == 5
        for last in (second, followed):
            assert "initial commit" in last
            assert 'href="?page=1"' in last
        for page in (3, 101):
            assert client.get(f"/ada/long/commits/main?page={page}").status_code == 404
        assert client.get("/ada/long/commits/main?page=2&cursor=x").status_code == 400


def test_branches_and_tags_can_be_chosen_without_script(hub: RunningHub, tiny: str) -> None:
    ada = api(hub, create_token(hub, create_user(hub, "carl")))
    with ada as client:
        create_repo(client, "refs")
        assert client.post("/api/models/carl/refs/branch/feature%2Fone", json={}).status_code == 200
        assert client.post("/api/models/carl/refs/tag/main", json={"tag": "v1.0"}).status_code == 200
        assert send_commit(client, "carl/refs", {"x.txt": b"x"}, rev="feature/one").status_code == 200
        page = main_of(client.get("/carl/refs/tree/main"))
        assert "<option>feature/one</option>" in page
        assert "<option>v1.0</option>" in page
        led = client.get("/carl/refs/tree?rev=feature/one&path=")
        assert (led.status_code, led.headers["location"]) == (303, "/carl/refs/tree/feature%2Fone")
        inside = main_of(client.get("/carl/refs/tree/feature/one"))
        assert 'href="/carl/refs/blob/feature%2Fone/x.txt"' in inside
        assert "<option selected>feature/one</option>" in inside
        for rev in ("feature/one", "feature%2Fone"):
            assert client.get(f"/carl/refs/blob/{rev}/x.txt").status_code == 200
        assert client.get("/carl/refs/tree?to=commits&rev=v1.0").headers["location"] == "/carl/refs/commits/v1.0"
        assert client.get("/carl/refs/tree?to=evil").status_code == 404


@pytest.mark.parametrize(
    "tail",
    [
        "/tree/main/missing",
        "/tree/missing",
        "/blob/main/missing",
        "/blob/main/../../etc/passwd",
        "/blob/nope/README.md",
        "/commit/0123456789",
        "/commit/main%00",
        "/commits/nope",
        "/tree/refs/pr/99",
        "/blob/main/" + "a/" * 300,
    ],
)
def test_unknown_paths_and_revisions_are_404(hub: RunningHub, tiny: str, tail: str) -> None:
    with hub.client() as client:
        assert client.get(tiny + tail).status_code in (400, 404)


def test_tree_and_blob_redirect_to_each_other(hub: RunningHub, tiny: str) -> None:
    with hub.client() as client:
        assert client.get(f"{tiny}/tree/main/config.json").headers["location"] == f"{tiny}/blob/main/config.json"
        assert client.get(f"{tiny}/blob/main/docs").headers["location"] == f"{tiny}/tree/main/docs"


TAILS = ["", "/tree/main", "/blob/main/.gitattributes", "/commits/main", "/settings", "/settings/delete"]


@pytest.mark.parametrize("tail", TAILS)
def test_private_repo_is_404_for_others(hub: RunningHub, tail: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "secret", "dataset", private=True)
    with browser_of(hub, ada) as owner, browser_of(hub, bob) as other, hub.client() as visitor:
        assert owner.get(f"/datasets/ada/secret{tail}").status_code == 200
        for client in (other, visitor):
            hidden, missing = (client.get(f"/datasets/ada/{name}{tail}") for name in ("secret", "missing"))
            assert hidden.status_code == missing.status_code == 404
            assert NOTHING in unescape(hidden.text)
            assert NOTHING in unescape(missing.text)
            assert "<bdi>secret" not in hidden.text
        assert 'href="/login?next=%2Fdatasets%2Fada%2Fsecret' in visitor.get(f"/datasets/ada/secret{tail}").text


def test_members_read_private_repos_and_their_files_in_the_browser(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "acme/inner", private=True)
        create_commit(client, "acme/inner", {"a.png": PNG, "page.html": b"<script>alert(1)</script>"})
    with browser_of(hub, bob) as member, hub.client() as visitor:
        assert member.get("/acme/inner").status_code == 200
        shown = member.get("/acme/inner/resolve/main/a.png")
        assert shown.content == PNG
        assert "Cookie" in shown.headers["vary"]
        page = member.get("/acme/inner/resolve/main/page.html")
        assert page.headers["content-type"] == "text/plain; charset=utf-8"
        assert "sandbox" in page.headers["content-security-policy"]
        assert visitor.get("/acme/inner/resolve/main/a.png").status_code == 401


def test_former_name_redirects_to_the_current_one(hub: RunningHub, tiny: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as client:
        create_repo(client, "old")
        moved = client.post("/api/repos/move", json={"fromRepo": "bob/old", "toRepo": "bob/new-name", "type": "model"})
        assert moved.status_code == 200
        for tail in ("", "/tree/main", "/blob/main/.gitattributes?plain=1", "/commits/main"):
            led = client.get(f"/bob/old{tail}")
            assert (led.status_code, led.headers["location"]) == (307, f"/bob/new-name{tail}")


def test_gated_repo_shows_its_card_but_not_its_files(hub: RunningHub, tiny: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as client:
        create_repo(client, "gated")
        files = {"README.md": b"# What it is", "data.txt": b"inside the gate\n", "x.safetensors": b"12345"}
        sha = create_commit(client, "bob/gated", files)
        assert send_commit(client, "bob/gated", {"new.txt": b"x"}, query="?create_pr=1").status_code == 200
        assert client.put("/api/models/bob/gated/settings", json={"gated": "manual"}).status_code == 200
    with hub.client() as visitor:
        assert "What it is" in main_of(visitor.get("/bob/gated"))
        assert "Gated" in main_of(visitor.get("/bob/gated"))
        folder = main_of(visitor.get("/bob/gated/tree/main"))
        assert "data.txt" in folder
        assert [name in folder for name in ("Download README.md", "Download data.txt")] == [True, False]
        proposed = main_of(visitor.get("/bob/gated/tree/refs%2Fpr%2F1"))
        assert ("README.md" in proposed, "Download README.md" in proposed) == (True, False)
        file = main_of(visitor.get("/bob/gated/blob/main/data.txt"))
        assert "inside the gate" not in file
        assert "This repo is gated" in file
        assert "inside the gate" not in main_of(visitor.get(f"/bob/gated/commit/{sha}"))
        assert "SHA-256" not in main_of(visitor.get("/bob/gated/blob/main/x.safetensors"))
        assert "What it is" in main_of(visitor.get("/bob/gated/blob/main/README.md"))


def test_clone_url_redirects_to_the_card(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "rows", "dataset")
        create_repo(client, "secret", private=True)
    with browser_of(hub, ada) as owner, browser_of(hub) as anyone:
        assert anyone.get("/datasets/ada/rows.git").headers["location"] == "/datasets/ada/rows"
        assert owner.get("/ada/secret.git").headers["location"] == "/ada/secret"
        assert [anyone.get(f"/ada/{name}.git").status_code for name in ("secret", "never")] == [404, 404]
