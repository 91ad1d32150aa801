"""O71: a file's name can neither make a browser run the file nor break the hub's answers."""

import mimetypes
import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote

import httpx
import pytest
from tests.bed import packs
from tests.bed.on_disk import branch_with
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_commit, send_lines, text_file
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
TYPES = {
    "data:TEXT/HTML,x": BYTES, "data:TEXT/JAVASCRIPT,run": BYTES, "data:text/html": BYTES,
    "data:image/svg+xml,x.png": "image/png", "x.html;.bin": BYTES,
    "x.HTML": TEXT, "x.html": TEXT, "x.htm": TEXT, "x.js": TEXT, "x.mjs": TEXT, "x.cjs": TEXT, "x.css": TEXT,
    "x.svg": TEXT, "x.SVG": TEXT, "x.xml": TEXT, "x.xhtml": TEXT, "x.xsl": TEXT, "x.svgz": BYTES,
    "x.html.gz": "application/gzip",
    "x.pdf": BYTES, "x.wasm": BYTES, "x.swf": BYTES, "x.mhtml": TEXT, "x.html ": BYTES, "x.html.": BYTES,
    "x.unknown": BYTES, "html": BYTES, ".html": TEXT, "LICENSE": BYTES, "x.": BYTES,
    "x.txt": TEXT, "x.py": TEXT, "x.yaml": TEXT, "x.ts": TEXT, "README.md": "text/markdown; charset=utf-8",
    "config.json": "application/json", "x.csv": "text/csv; charset=utf-8",
    "x.tsv": "text/tab-separated-values; charset=utf-8",
    "x.png": "image/png", "x.PNG": "image/png", "x.jpg": "image/jpeg", "x.jpeg": "image/jpeg", "x.gif": "image/gif",
    "x.webp": "image/webp", "x.avif": "image/avif", "x.bmp": "image/bmp", "x.ico": "image/vnd.microsoft.icon",
    "x.mp3": "audio/mpeg", "x.wav": "audio/wav", "x.flac": "audio/flac", "x.mp4": "video/mp4", "x.webm": "video/webm",
    "x.zip": "application/zip", "x.tar": "application/x-tar", "x.tar.gz": "application/gzip",
    "x.parquet": "application/vnd.apache.parquet", "x.safetensors": BYTES, "x.bin": BYTES, "x.gguf": BYTES,
}  # fmt: skip

CONTROLS = (
    "a\nb.txt", "a\rb.txt", "a\r\nX-Evil: 1\r\n\r\n<script>.html", "tab\t.md", "del\x7f.png", "\x01", "esc\x1b[31m.py",
    "c1\x80.txt", "c1\x85.html", "c1\x9b31m.js", "c1\x9f", "fol\nder/file.txt", "fol\x85der/README.md",
)  # fmt: skip
UNUSUAL = (
    "line\u2028separator.html", "paragraph\u2029.js", "überraschung.txt", "模型/权重.bin", "😀.png", "\u202egnp.exe",
    "a\u00a0b", "\ufeff.txt", '"quoted\'.txt', "<img src=x onerror=alert(1)>.md", "a;b=c,d.txt", "100%.txt",
    "a#b?c.txt", "%0d%0aX-Evil: 1", "\u0130.HTML", "a`${b}`\u00ad.svg",
)  # fmt: skip
HEADER = re.compile(r"[\x20-\x7e]*\Z")


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    """A token that may write to the repo ada/tiny."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "tiny")
        yield client


def checked(answer: httpx.Response, status: int = 200) -> httpx.Response:
    """The answer, if its status is the expected one and each header is one line of printable ASCII."""
    assert answer.status_code == status, (answer.request.url, answer.status_code, answer.text[:300])
    for name, value in answer.headers.multi_items():
        assert HEADER.match(value), (answer.request.url, name, value)
    assert "x-evil" not in answer.headers, answer.request.url
    return answer


def test_o71_content_types_are_from_a_fixed_table(ada: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    mimetypes.init()
    monkeypatch.setitem(mimetypes.types_map, ".unknown", "application/x-of-this-machine")
    create_commit(ada, "ada/tiny", dict.fromkeys(TYPES, b"<script>alert(1)</script>"))
    for path, kind in TYPES.items():
        for verb in ("resolve", "raw"):
            answer = checked(ada.get(f"/ada/tiny/{verb}/main/{quote(path)}"))
            assert answer.headers["content-type"] == kind, path
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_o71_control_characters_are_refused_in_commits(ada: httpx.Client) -> None:
    sha = head_of(ada, "ada/tiny")
    for path in CONTROLS:
        large = {"path": path, "algo": "sha256", "oid": "0" * 64, "size": 1}
        for lines in (
            [text_file(path)],
            [text_file(f"folder/{path}")],
            [("lfsFile", large)],
            [text_file("good"), text_file(path)],
            [text_file("good", oldPath=path)],
            [("deletedFile", {"path": path})],
        ):
            refused = checked(send_lines(ada, "ada/tiny", *lines), 422)
            assert "control character" in refused.json()["error"], (path, refused.text)
        asked = {"files": [{"path": path, "size": 1}]}
        refused = checked(ada.post("/api/models/ada/tiny/preupload/main", json=asked), 422)
        assert "control character" in refused.json()["error"]
        asked = {"name": "other", "files": [{"path": path, "content": "x"}]}  # type: ignore[dict-item]
        refused = checked(ada.post("/api/repos/create", json=asked), 422)
        assert "control character" in refused.json()["error"]
    assert head_of(ada, "ada/tiny") == sha
    assert ada.get("/api/models/ada/other").status_code == 404


def test_o71_control_characters_are_refused_in_pushes(hub: RunningHub, ada: httpx.Client) -> None:
    token = ada.headers["authorization"].removeprefix("Bearer ")
    text = packs.blob(b"text")
    for path in CONTROLS:
        folder, _, name = path.rpartition("/")
        inner = packs.tree(("100644", name, text))
        root = packs.tree(("40000", folder, inner)) if folder else inner
        head = packs.commit(root)
        body = packs.commands([(None, head.sha, "refs/heads/odd")]) + packs.pack({text, inner, root, head})
        answer = checked(packs.push(hub.url, token, body))
        assert packs.report_of(answer) == ["unpack ok", "ng refs/heads/odd refused, see above"], path
        assert b"control character" in answer.content, (path, answer.content)
    assert ada.get("/api/models/ada/tiny/revision/odd").status_code == 404


def test_o71_unusual_names_work(hub: RunningHub, ada: httpx.Client) -> None:
    files = {path: f"file {number}".encode() for number, path in enumerate(UNUSUAL)}
    create_commit(ada, "ada/tiny", files)
    assert paths_in(ada, "ada/tiny") == set(UNUSUAL)
    token = ada.headers["authorization"].removeprefix("Bearer ")
    text = packs.blob(b"text")
    root = packs.tree(
        *sorted((("100644", path, text) for path in UNUSUAL if "/" not in path), key=lambda row: row[1].encode())
    )
    head = packs.commit(root)
    body = packs.commands([(None, head.sha, "refs/heads/pushed")]) + packs.pack([text, root, head])
    assert packs.report_of(packs.push(hub.url, token, body)) == ["unpack ok", "ok refs/heads/pushed"]
    look_everywhere(ada, "main", head_of(ada, "ada/tiny"), files)


def test_o71_names_already_in_a_repo_never_break_an_answer(hub: RunningHub, ada: httpx.Client) -> None:
    files = {path: f"file {number}".encode() for number, path in enumerate(CONTROLS)}
    sha = branch_with(hub, ada, "ada/tiny", {**files}, "odd")
    look_everywhere(ada, "odd", sha, files)
    for path in CONTROLS[:-2]:
        assert send_lines(ada, "ada/tiny", ("deletedEntry", {"path": path}), rev="odd").status_code == 200, path
    moved = send_lines(ada, "ada/tiny", text_file("fixed.txt", oldPath=CONTROLS[-2]), rev="odd")
    assert moved.status_code == 200, moved.text
    assert send_lines(ada, "ada/tiny", ("deletedFolder", {"path": "fol\x85der"}), rev="odd").status_code == 200
    assert paths_in(ada, "ada/tiny", "odd") == {"fixed.txt"}
    for commit_id in [one["id"] for one in ada.get("/api/models/ada/tiny/commits/odd").json()]:
        checked(ada.get(f"/ada/tiny/commit/{commit_id}"))


def test_o71_other_files_can_be_committed_beside_them(hub: RunningHub, ada: httpx.Client) -> None:
    branch_with(hub, ada, "ada/tiny", {"a\nb": b"odd"}, "odd")
    create_commit(ada, "ada/tiny", {"good.txt": b"good"}, rev="odd")
    assert paths_in(ada, "ada/tiny", "odd") == {"a\nb", "good.txt"}


def test_o71_names_that_are_not_utf8_never_break_an_answer(hub: RunningHub, ada: httpx.Client) -> None:
    sha = branch_with(hub, ada, "ada/tiny", {b"latin-\xe9.txt": b"x", b"\xff/\xfe": b"y", "z.txt": b"z"}, "odd")
    for address in (
        *("/api/models/ada/tiny/tree/odd", "/api/models/ada/tiny/tree/odd?recursive=1&expand=1"),
        *("/api/models/ada/tiny/revision/odd", "/api/models/ada/tiny/revision/odd?blobs=1"),
        *("/ada/tiny/tree/odd", f"/ada/tiny/commit/{sha}", "/ada/tiny/commits/odd", "/ada/tiny/resolve/odd/z.txt"),
    ):
        checked(ada.get(address))
    for path in ("latin-%E9.txt", "%FF/%FE"):
        for verb in ("resolve", "raw", "blob", "tree"):
            checked(ada.get(f"/ada/tiny/{verb}/odd/{path}"), 400)


def test_o71_names_and_revisions_in_a_request_leave_headers_valid(hub: RunningHub, ada: httpx.Client) -> None:
    create_commit(ada, "ada/tiny", {"folder/file.txt": b"x"})
    for name in (*CONTROLS, *UNUSUAL):
        sent = quote(name, safe="")
        for verb in ("resolve", "raw", "blob", "tree"):
            checked(ada.get(f"/ada/tiny/{verb}/main/{sent}"), 404)
            checked(ada.get(f"/ada/tiny/{verb}/{sent}/file.txt"), 404)
            checked(ada.get(f"/ada/tiny/{verb}/main/folder/{sent}"), 404)
        for address in ("tree/main/{}", "tree/{}", "revision/{}", "commits/{}", "tree/{}/folder"):
            checked(ada.get(f"/api/models/ada/tiny/{address.format(sent)}"), 404)
        assert checked(ada.post("/api/models/ada/tiny/paths-info/main", json={"paths": [name]})).json() == []
        checked(ada.post(f"/api/models/ada/tiny/paths-info/{sent}", json={"paths": [name]}), 404)
        checked(send_commit(ada, "ada/tiny", {"x": b"x"}, rev=name), 404)
        checked(
            send_lines(ada, "ada/tiny", ("deletedEntry", {"path": f"none/{name}"})), 422 if name in CONTROLS else 404
        )
        led = checked(ada.get("/ada/tiny/tree", params={"rev": name, "path": name}), 303)
        assert led.headers["location"] == f"/ada/tiny/tree/{sent}/{quote(name)}"


def look_everywhere(ada: httpx.Client, rev: str, sha: str, files: dict[str, bytes]) -> None:
    """Every page and route that names or serves these files."""
    model = "/api/models/ada/tiny"
    listed = checked(ada.get(f"{model}/tree/{rev}?recursive=1")).json()
    assert {entry["path"] for entry in listed if entry["type"] == "file"} - {".gitattributes"} == set(files)
    checked(ada.get(f"{model}/tree/{rev}?recursive=1&expand=1"))
    assert_pages_lead_through(ada, f"{model}/tree/{rev}?recursive=1&limit=1", len(listed))
    info = checked(ada.get(f"{model}/revision/{rev}?blobs=1")).json()
    assert {one["rfilename"] for one in info["siblings"]} - {".gitattributes"} == set(files)
    for more in ({"paths": list(files), "expand": True}, {"paths": list(files)}):
        found = checked(ada.post(f"{model}/paths-info/{rev}", json=more)).json()
        assert {one["path"] for one in found} == set(files)
    for page in (f"/ada/tiny/tree/{rev}", f"/ada/tiny/commit/{sha}", f"/ada/tiny/commits/{rev}"):
        plain(checked(ada.get(page)))
    for path, content in files.items():
        for verb in ("resolve", "raw"):
            answer = checked(ada.get(f"/ada/tiny/{verb}/{rev}/{quote(path)}"))
            assert answer.content == content or is_pointer(answer), path
            name = path.rpartition("/")[2]
            said = answer.headers["content-disposition"]
            assert said.startswith(f"inline; filename*=UTF-8''{quote(name, safe='')}; filename=\""), said
            assert answer.headers["content-type"].partition(";")[0] not in (
                "text/html",
                "text/javascript",
                "image/svg+xml",
            )
        plain(checked(ada.get(f"/ada/tiny/blob/{rev}/{quote(path)}")))
        led = checked(ada.get(f"/ada/tiny/tree/{rev}/{quote(path)}"), 303)
        assert led.headers["location"] == f"/ada/tiny/blob/{rev}/{quote(path)}"
        folder = path.rpartition("/")[0]
        if folder:
            plain(checked(ada.get(f"/ada/tiny/tree/{rev}/{quote(folder)}")))
            checked(ada.get(f"{model}/tree/{rev}/{quote(folder)}"))
            led = checked(ada.get(f"/ada/tiny/blob/{rev}/{quote(folder)}"), 303)
            assert led.headers["location"] == f"/ada/tiny/tree/{rev}/{quote(folder)}"
            checked(ada.get(f"/ada/tiny/resolve/{rev}/{quote(folder)}"), 404)


def is_pointer(answer: httpx.Response) -> bool:
    return "/raw/" in str(answer.request.url) and answer.content.startswith(b"version https://git-lfs")


def assert_pages_lead_through(ada: httpx.Client, address: str, count: int) -> None:
    """The Link header of each page leads to the next one."""
    for _ in range(count - 1):
        answer = checked(ada.get(address))
        assert len(answer.json()) == 1
        address = answer.links["next"]["url"]
    assert "link" not in checked(ada.get(address)).headers


def plain(page: httpx.Response) -> None:
    """Names are text in a page: they open no element, and control characters are removed."""
    assert "<img src=x" not in page.text
    assert "<script>" not in page.text
    title = unescape(page.text.partition("<title>")[2].partition("</title>")[0])
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", title), (page.request.url, title)
    shown = page.text.partition('name="path" value="')[2].partition('">')[2] or page.text
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", shown), page.request.url
