"""`/resolve` and `/raw`: files at a revision, their headers, and ranges."""

import hashlib
from urllib.parse import quote, unquote

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_body, send_commit, send_large, send_lines, text_file
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.git.objects import MAX_BLOB_IN_MEMORY, pointer_text

pytestmark = pytest.mark.one_engine

TEXT = b"0123456789"


def blob_sha(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def add_large(client: httpx.Client, repo: str, path: str, content: bytes) -> str:
    oid = send_large(client, repo, content)
    value = {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}
    assert send_lines(client, repo, ("lfsFile", value)).status_code == 200
    return oid


def test_resolve_has_the_headers_that_clients_need(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.json": TEXT, "empty": b""})
        oid = add_large(ada, "ada/tiny", "w.bin", TEXT * 2)
        sha = ada.get("/api/models/ada/tiny").json()["sha"]
        expected = {"a.json": (TEXT, blob_sha(TEXT)), "empty": (b"", blob_sha(b"")), "w.bin": (TEXT * 2, oid)}
        for path, (content, etag) in expected.items():
            got, asked = (anyone.request(verb, f"/ada/tiny/resolve/main/{path}") for verb in ("GET", "HEAD"))
            assert (got.content, asked.content) == (content, b"")
            for answer in (got, asked):
                assert answer.status_code == 200
                assert answer.headers["etag"] == f'"{etag}"'
                assert answer.headers["x-repo-commit"] == sha
                assert answer.headers["content-length"] == str(len(content))
                assert answer.headers["accept-ranges"] == "bytes"
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
                assert answer.headers["access-control-allow-origin"] == "*"
                assert "x-repo-commit" in answer.headers["access-control-expose-headers"].lower()
                assert "last-modified" not in answer.headers, "of a file that others may have sent first"
            pointers = anyone.get(f"/ada/tiny/raw/main/{path}")
            held = pointer_text(oid, 20) if path == "w.bin" else content
            assert (pointers.content, pointers.headers["etag"]) == (held, f'"{blob_sha(held)}"')
        for verb in ("resolve", "raw"):
            for missing in ("none", "", "a.json/x", "%2e%2e/a.json", "a.json/"):
                refused = anyone.get(f"/ada/tiny/{verb}/main/{missing}")
                assert (refused.status_code, refused.headers["x-error-code"]) == (404, "EntryNotFound"), missing
                assert refused.headers["x-repo-commit"] == sha
                assert refused.headers["content-type"].startswith("text/plain")
            refused = anyone.get(f"/ada/tiny/{verb}/nowhere/a.json")
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound")
        bad = anyone.get("/ada/tiny/resolve/main/a.json", headers={"authorization": "Bearer hf_nonsense"})
        assert (bad.status_code, bad.headers["x-error-message"]) == (401, "Invalid credentials in Authorization header")


def test_links_with_download_are_saved_by_browsers(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.txt": TEXT})
        add_large(ada, "ada/tiny", "w.bin", TEXT)
        for path in ("a.txt", "w.bin"):
            for query, kind in {
                "": "inline",
                "?download=true": "attachment",
                "?download=1": "attachment",
                "?download=false": "inline",
            }.items():
                for verb, more in (("GET", {}), ("HEAD", {}), ("GET", {"range": "bytes=0-1"})):
                    answer = anyone.request(verb, f"/ada/tiny/resolve/main/{path}{query}", headers=more)
                    assert answer.headers["content-disposition"].startswith(f"{kind}; "), (path, query, verb)
                    assert verb == "HEAD" or TEXT.startswith(answer.content)


RANGES = {
    "bytes=0-0": (206, 0, 1),
    "bytes=3-5": (206, 3, 6),
    "bytes=3-": (206, 3, None),
    "bytes=-4": (206, -4, None),
    "bytes=-99999999": (206, 0, None),
    "bytes=5-99999999": (206, 5, None),
    "Bytes=1-1": (206, 1, 2),
    "bytes= 1 - 1": (206, 1, 2),
    # Several ranges and malformed ones are answered with the whole file (RFC 9110, section 14.2).
    "bytes=0-0,2-3": (200, 0, None),
    "bytes=5-3": (200, 0, None),
    "bytes=": (200, 0, None),
    "bytes=-": (200, 0, None),
    "lines=1-2": (200, 0, None),
    "bytes=a-b": (200, 0, None),
    "bytes=99999999-": (416, 0, 0),
    "bytes=-0": (416, 0, 0),
    "bytes=" + "9" * 18 + "-": (416, 0, 0),
}


@pytest.mark.parametrize("kind", ["in git", "in git and streamed", "large"])
def test_ranges_of_a_file_are_served(sqlite_hub: RunningHub, kind: str) -> None:
    content = bytes(range(256)) * (MAX_BLOB_IN_MEMORY // 256 + 10) if "streamed" in kind else bytes(range(200))
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        if kind == "large":
            add_large(ada, "ada/tiny", "file", content)
        else:
            create_commit(ada, "ada/tiny", {"file": content})
        address = "/ada/tiny/resolve/main/file"
        etag = ada.head(address).headers["etag"]
        for header, (status, start, end) in RANGES.items():
            for verb in ("GET", "HEAD"):
                answer = ada.request(verb, address, headers={"range": header})
                assert answer.status_code == status, (header, verb)
                if status == 416:
                    assert answer.headers["content-range"] == f"bytes */{len(content)}"
                    continue
                part = content[start:end]
                assert answer.headers["content-length"] == str(len(part)), header
                assert answer.content == (part if verb == "GET" else b""), header
                if status == 206:
                    at = content.index(part) if start >= 0 else len(content) + start
                    assert answer.headers["content-range"] == f"bytes {at}-{at + len(part) - 1}/{len(content)}"
        for given, status in (
            (etag, 206),
            ('"other"', 200),
            (f"W/{etag}", 200),
            ("Tue, 01 Jan 2030 00:00:00 GMT", 200),
        ):
            answer = ada.get(address, headers={"range": "bytes=0-0", "if-range": given})
            assert answer.status_code == status, given
        for given in (etag, f"W/{etag}", f'"x", {etag}', "*", f"{etag},"):
            answer = ada.get(address, headers={"if-none-match": given, "range": "bytes=0-0"})
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag), given
            assert len(answer.headers["x-repo-commit"]) == 40
        for given in ('"x"', etag.strip('"'), '"x", W/"y"'):
            assert ada.get(address, headers={"if-none-match": given}).status_code == 200, given
        # Range readers send If-Range, so that all parts are of one file.
        for given in (etag, f'"x", {etag}', "*"):
            assert ada.get(address, headers={"if-match": given, "range": "bytes=0-0"}).status_code == 206, given
        for given in ('"x"', f"W/{etag}", etag.strip('"')):
            for method in ("GET", "HEAD"):
                answer = ada.request(method, address, headers={"if-match": given, "if-none-match": etag})
                assert (answer.status_code, answer.content, answer.headers["etag"]) == (412, b"", etag), given


HOSTILE_NAMES = (
    'a"b.txt', "a;b=c.txt", "a%0d%0aSet-Cookie: x=1.txt", "é.txt", "😀.bin", "a'b.txt", "%2e%2e%2fx", "a?b#c.txt",
    "a,b:c.txt", "a b .txt", "\u202egpj.txt", "con", "a.", "-rf", "~", "x" * 250 + ".txt", "<script>.txt",
)  # fmt: skip


def test_hostile_file_names_do_not_break_headers(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {f"d/{name}": name.encode() for name in HOSTILE_NAMES})
        for name in HOSTILE_NAMES:
            got = ada.get(f"/ada/tiny/resolve/main/d/{quote(name, safe='')}")
            assert got.content == name.encode(), name
            said = got.headers["content-disposition"]
            extended, plain = said.removeprefix("inline; filename*=UTF-8''").split("; ", 1)
            assert unquote(extended) == name
            assert plain.startswith('filename="')
            assert plain.endswith('";')
            assert '"' not in plain[10:-2]
            assert "set-cookie" not in got.headers
            missing = ada.get(f"/ada/tiny/resolve/main/none/{quote(name, safe='')}")
            assert (missing.status_code, missing.headers["x-error-code"]) == (404, "EntryNotFound")


def test_revisions_may_contain_slashes(hub: RunningHub) -> None:
    """Percent-encoded they are one segment; unencoded, the longest existing ref is used."""
    long = "one/two/three/four/five/six/seven"
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
        api(hub, create_token(hub, create_user(hub, "bob"))) as bob,
    ):
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"f": b"main", "x/f": b"main x"})
        for branch in ("a/b", long):
            assert ada.post(f"/api/models/ada/tiny/branch/{quote(branch, safe='')}").status_code == 200
            create_commit(ada, "ada/tiny", {"f": branch.encode()}, rev=branch)
        # A tag whose name begins like a branch's: only the encoded form is unambiguous.
        create_commit(ada, "ada/tiny", {"f": b"tagged"})
        assert ada.post("/api/models/ada/tiny/tag/main", json={"tag": "main/x"}).status_code == 200
        create_commit(ada, "ada/tiny", {"f": b"main", "x/f": b"main x"})
        assert send_commit(bob, "ada/tiny", {"f": b"idea"}, query="?create_pr=1").status_code == 200
        expected = {
            "a%2Fb/f": b"a/b",
            "a/b/f": b"a/b",
            f"{quote(long, safe='')}/f": long.encode(),
            "refs%2Fpr%2F1/f": b"idea",
            "refs/pr/1/f": b"idea",
            "refs%2fheads%2fa%2fb/f": b"a/b",
            "main%2Fx/f": b"tagged",
            "main/x/f": b"tagged",
            "refs%2Fheads%2Fmain/x/f": b"main x",
        }
        for rest, content in expected.items():
            got = ada.get(f"/ada/tiny/resolve/{rest}")
            assert (got.status_code, got.content) == (200, content), rest
            rev, _, path = rest.rpartition("/")
            listed = ada.get(f"/api/models/ada/tiny/tree/{rev}")
            assert path in {one["path"].rpartition("/")[2] for one in listed.json()}, rest
        for rest in ("refs%2Fpr%2F2/f", "refs/pr/01/f", "refs/pr/x/f", "a%2Fc/f", "a%2Fb%2Ff"):
            assert ada.get(f"/ada/tiny/resolve/{rest}").headers["x-error-code"] == "RevisionNotFound", rest


def test_abbreviated_commits_are_found_and_unknown_ones_are_404(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sha = create_commit(ada, "ada/tiny", {"f": TEXT})
        for rev in (sha, sha[:7], sha[:12], sha.upper()):
            assert ada.get(f"/ada/tiny/resolve/{rev}/f").headers["x-repo-commit"] == sha, rev
        blob = ada.get("/api/models/ada/tiny/tree/main").json()[-1]["oid"]
        for rev in (sha[:6], blob, sha + "0", "0" * 40, "main^", "main~1", "main@{0}", ":f", "HEAD~", "%20main"):
            answer = ada.get(f"/ada/tiny/resolve/{quote(rev)}/f")
            assert (answer.status_code, answer.headers["x-error-code"]) == (404, "RevisionNotFound"), rev


def test_pointer_in_a_commit_does_not_give_access_to_the_file(hub: RunningHub) -> None:
    """Anyone who knows the hash and size of a private file can write a pointer to it."""
    secret = b"\0private weights"
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, eve)) as thief:
        create_repo(owner, "hidden", private=True)
        oid = send_large(owner, "ada/hidden", secret)
        pointer = pointer_text(oid, len(secret)).decode()
        create_repo(thief, "mine")
        for path in ("w.txt", "w.bin"):
            refused = send_lines(thief, "eve/mine", text_file(path, pointer))
            assert refused.status_code == 422, path
            assert oid in refused.json()["error"]
        long = b'{"key": "file", "value": {"pad": "%b", "content": "%b", "pad2": "%b", "path": "w.txt"}}' % (
            b"x" * 40_000, pointer.replace("\n", "\\n").encode(), b"x" * 40_000,
        )  # fmt: skip
        assert send_body(thief, "eve/mine", b'{"key":"header","value":{"summary":"x"}}\n' + long).status_code == 422
        made = thief.post(
            "/api/repos/create", json={"name": "second", "files": [{"path": "w.txt", "content": pointer}]}
        )
        assert made.status_code == 422
        assert thief.get("/eve/mine/resolve/main/w.txt").status_code == 404
        # A user who has the file can commit it either way.
        assert send_lines(owner, "ada/hidden", text_file("w.txt", pointer)).status_code == 200
        assert owner.get("/ada/hidden/resolve/main/w.txt").content == secret
        assert owner.get("/ada/hidden/raw/main/w.txt").text == pointer
