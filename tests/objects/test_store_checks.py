"""`hubgate doctor` about the store of large content, what a backup says about it, and a start without credentials."""

import json
from pathlib import Path

import pytest
from tests.bed import engines
from tests.bed.processes import hubgate
from tests.objects.misbehaving import StoreRequest, error, response, run_far_end
from tests.objects.stores import Place

from hubgate.server.doctor import Finding, examine
from hubgate.server.settings import Settings


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
    assert "403" in found.text


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
