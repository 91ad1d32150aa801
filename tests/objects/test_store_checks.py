"""`hubgate doctor` about the store of large content, what a backup says about it, and a start without credentials."""

import json
from pathlib import Path

import pytest
from tests.bed import engines
from tests.bed.processes import hubgate
from tests.bed.repos import send_large
from tests.bed.running_hub import run_hub
from tests.objects.misbehaving import StoreRequest, error, response, run_far_end
from tests.objects.stores import Place, with_ada

from hubgate.server.doctor import Finding, examine
from hubgate.server.objects import store
from hubgate.server.settings import Settings
from hubgate.server.storage.engines import open_database


@pytest.fixture
def database_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The doctor's own statements differ by engine; here only the store matters."""
    return engines.SqliteEngine(sqlite_template, tmp_path).fresh_url()


async def findings(settings: Settings) -> list[Finding]:
    return [found for found in await examine(settings) if found.check == "large files"]


async def test_folder_is_named(database_url: str, tmp_path: Path) -> None:
    (found,) = await findings(engines.settings_for(database_url, tmp_path))
    assert (found.level, found.text) == ("ok", f"are stored in {tmp_path / 'lfs'}")


async def test_store_with_all_rights_is_ok(database_url: str, bucket: Place, tmp_path: Path) -> None:
    found = await findings(engines.settings_for(database_url, tmp_path, **bucket.flags))
    assert [one for one in found if one.level != "ok"] == []
    said = "\n".join(one.text for one in found)
    for expected in ("written, read, listed and deleted", "conditional writes are supported", "clock", "signed links"):
        assert expected in said
    async with bucket.opened() as objects:
        assert [item async for item in objects.list("doctor/")] == [], "nothing is left"


async def test_wrong_secret_is_named(
    database_url: str, bucket: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    (found,) = await findings(engines.settings_for(database_url, tmp_path, **bucket.flags))
    assert found.level == "fail"
    assert "cannot write an object" in found.text
    assert "403 SignatureDoesNotMatch" in found.text


async def test_address_of_a_store_that_is_away_is_named(
    database_url: str, bucket: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    (found,) = await findings(engines.settings_for(database_url, tmp_path, **bucket.flags))
    assert (found.level, " at http://127.0.0.1:1: ConnectError" in found.text) == ("fail", True)


async def test_missing_right_and_clock_and_conditions_are_named(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot list, and one whose clock is wrong and that ignores conditions."""
    content = b""

    def answer(request: StoreRequest) -> bytes:
        nonlocal content
        date = "Thu, 01 Jan 2026 00:00:00 GMT"
        match request.method:
            case "PUT":
                content = request.body
                return response(200)
            case "HEAD":
                return response(200, date=date) if content else response(404)
            case "POST":
                name = "InitiateMultipartUploadResult"
                return response(200, f"<{name}><UploadId>1</UploadId></{name}>".encode())
            case "GET" if "list-type" in request.target and forbidden:
                return error(403, "AccessDenied")
            case "GET" if "list-type" in request.target:
                name = far_end.requests[0].target.partition("/bucket/")[2]
                found = f"<Contents><Key>{name}</Key><Size>32</Size></Contents>"
                return response(200, f"<ListBucketResult>{found}</ListBucketResult>".encode())
            case "GET" if "uploads=" in request.target:
                return response(200, b"<ListMultipartUploadsResult></ListMultipartUploadsResult>")
            case "GET" if "range" in request.headers:
                return response(206, content[1:], content_range=f"bytes 1-{len(content) - 1}/{len(content)}")
            case "GET":
                return response(200, content, content_type="text/plain")
        content = b"" if "uploadId" not in request.target else content
        return response(204)

    for forbidden in (True, False):
        content = b""
        with run_far_end(answer) as far_end:
            place = far_end.place(tmp_path)
            for name, value in place.variables.items():
                monkeypatch.setenv(name, value)
            found = await findings(engines.settings_for(database_url, tmp_path, **place.flags))
        bad = [one.text for one in found if one.level != "ok"]
        if forbidden:
            assert len(bad) == 1
            assert bad[0].startswith("cannot list objects in s3://bucket/hub: ")
            assert "403 AccessDenied" in bad[0]
        else:
            assert [text.partition(":")[0] for text in bad[:1]] == ["conditional writes are not supported"]
            assert "differ by" in bad[1]
            assert len(bad) == 2


async def test_missing_credentials_are_named(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    (found,) = await findings(engines.settings_for(database_url, tmp_path, objects_url="s3://bucket"))
    assert (found.level, "AWS_ACCESS_KEY_ID" in found.text) == ("fail", True)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"])
def test_variable_with_a_line_break_is_named_and_not_shown(tmp_path: Path, name: str) -> None:
    """As `export X=$(printf ...)` or a file of secrets results in: the error about the header would contain it."""
    variables = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    arguments = ("--from", "folder", "--to", "s3://bucket", "--data-dir", str(tmp_path))
    done = hubgate("admin", "objects", "copy", *arguments, cwd=tmp_path, **{**variables, name: "hush-hush\r\n"})
    assert (done.returncode, name in done.stderr) == (1, True)
    assert name == "AWS_REGION" or "hush-hush" not in done.stderr


@pytest.mark.parametrize("endpoint", ["https://HUB.example:443", "https://hub.example/s3", "https://hub.example"])
async def test_store_with_the_address_of_the_hub_gets_no_links(tmp_path: Path, endpoint: str) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    place = Place(tmp_path, "s3://bucket", variables)
    async with place.opened(hub_url="https://hub.example", public_endpoint=endpoint) as objects:
        assert await objects.link("lfs/a", 60, {}) is None
    async with place.opened(hub_url="https://hub.example", public_endpoint="https://hub.example:8443") as objects:
        assert await objects.link("lfs/a", 60, {}) is not None


async def test_former_store_is_named_if_files_move_back_to_the_folder(
    database_url: str, bucket: Place, tmp_path: Path
) -> None:
    found = await findings(engines.settings_for(database_url, tmp_path, objects_former_url=bucket.url))
    assert [one.level for one in found] == ["ok", "warn"]
    assert f"copy --from {bucket.url} --to folder," in found[1].text


async def test_refused_deletions_are_named(engine: engines.Engine, tmp_path: Path) -> None:
    settings = engines.settings_for(engine.fresh_url(), tmp_path)
    db = await open_database(settings.database_url)
    try:
        await db.write(lambda tx: store.mark(tx, "lfs", ["lfs/a", "lfs/b"], 0))
        times = store.Times(now=1, marked=0, begun=0)
        keys = await db.write(lambda tx: store.begin(tx, ["lfs/a", "lfs/b"], times))
        await db.write(lambda tx: store.end(tx, keys[:1], keys[1:], [], 1))
    finally:
        await db.close()
    _, found = await findings(settings)
    assert (found.level, "refuses to delete 1 unused object." in found.text) == ("warn", True)


async def test_forgotten_store_is_noticed(engine: engines.Engine, bucket: Place, tmp_path: Path) -> None:
    """As after a restore, or in a service without the variables of the operator's shell."""
    url = engine.fresh_url()
    with run_hub(engines.settings_for(url, tmp_path, **bucket.flags)) as hub, with_ada(hub) as ada:
        send_large(ada, "ada/tiny", b"content")
    assert {one.level for one in await findings(engines.settings_for(url, tmp_path, **bucket.flags))} == {"ok"}
    _, found = await findings(engines.settings_for(url, tmp_path))
    assert found.level == "fail"
    assert found.text.startswith(f"1 of 1 are missing in {tmp_path}, such as lfs/")
    assert "Set HUBGATE_OBJECTS_URL" in found.text


def test_hub_does_not_start_without_credentials(tmp_path: Path) -> None:
    done = hubgate("serve", "--objects-url", "s3://bucket", cwd=tmp_path, AWS_ACCESS_KEY_ID="")
    assert done.returncode == 1
    assert "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in done.stderr
    assert not (tmp_path / "var").exists()


def test_backup_says_what_it_leaves_to_the_store(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    arguments = (
        "--database-url",
        database_url,
        "--data-dir",
        str(tmp_path / "data"),
        "--objects-url",
        "s3://files",
    )
    done = hubgate("admin", "backup", "hub.tar", *arguments, cwd=tmp_path)
    assert "Large files in s3://files are not in it" in done.stdout, done.stderr
    done = hubgate("admin", "backup", "hub.tar", *arguments, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["notIncluded"] == "s3://files"
    back = (*arguments[:4], "--objects-former-url", "s3://former")
    done = hubgate("admin", "backup", "hub.tar", *back, cwd=tmp_path)
    assert "Large files in s3://former are not in it" in done.stdout, done.stderr
