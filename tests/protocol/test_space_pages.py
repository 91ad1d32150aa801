"""Pages about the apps of Spaces, for their owners and for the operator."""

from collections.abc import Iterator

import httpx
import pytest
from tests.bed.people import api, browser_of, create_token, create_user, submit
from tests.bed.repos import create_commit
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import NAME, append_log, create_space, find_space, lease_space, set_stage

from hubgate.server.accounts.model import User
from hubgate.server.spaces.logs_store import BUILD, RUN
from hubgate.server.spaces.model import Stage

pytestmark = pytest.mark.one_engine

PAGE = f"/spaces/{NAME}/app"


@pytest.fixture
def hub(spaces_hub: RunningHub) -> RunningHub:
    return spaces_hub


@pytest.fixture
def space(spaces_hub: RunningHub, user: User) -> str:
    with api(spaces_hub, create_token(spaces_hub, user)) as ada:
        return create_space(ada)


@pytest.fixture
def ada(spaces_hub: RunningHub, user: User, space: str) -> Iterator[httpx.Client]:
    with browser_of(spaces_hub, user) as browser:
        yield browser


def test_owner_restarts_pauses_and_sets_the_sleep_time(spaces_hub: RunningHub, ada: httpx.Client, space: str) -> None:
    set_stage(spaces_hub, space, Stage.RUNTIME_ERROR, "It ended five times in a row. <b>")
    page = ada.get(PAGE).text
    assert f"{spaces_hub.url}/hosted/{NAME}/webhooks/" in page
    assert "It ended five times in a row. &lt;b&gt;" in page
    assert submit(ada, PAGE, f"{PAGE}/restart", factory="on").status_code == 303
    found = find_space(spaces_hub, space)
    assert (found.stage, found.factory_version) == ("BUILDING", found.version)
    submit(ada, PAGE, f"{PAGE}/pause")
    assert find_space(spaces_hub, space).wanted == "pause"
    assert f"{PAGE}/pause" not in ada.get(PAGE).text
    submit(ada, PAGE, f"{PAGE}/sleep", seconds="3600")
    assert find_space(spaces_hub, space).sleep_seconds == 3600
    assert submit(ada, PAGE, f"{PAGE}/sleep", seconds="999999").status_code == 422
    assert submit(ada, PAGE, f"{PAGE}/sleep", seconds="x").status_code == 422


def test_secrets_are_write_only_on_the_page(ada: httpx.Client) -> None:
    fields = {"secret_key": "WEBHOOK_SECRET", "secret_value": "very-secret", "secret_description": "Of the webhook"}
    assert submit(ada, PAGE, f"{PAGE}/secrets", **fields).status_code == 303
    submit(ada, PAGE, f"{PAGE}/variables", variable_key="MODE", variable_value="fast", variable_description="")
    page = ada.get(PAGE).text
    assert f"{PAGE}/secrets/WEBHOOK_SECRET/delete" in page
    assert "very-secret" not in page
    assert "fast" in page
    refused = submit(ada, PAGE, f"{PAGE}/secrets", secret_key="not a name", secret_value="other", secret_description="")
    assert (refused.status_code, "not a name" in refused.text, "other" in refused.text) == (422, True, False)
    confirm = f"{PAGE}/secrets/WEBHOOK_SECRET/delete"
    assert submit(ada, confirm).status_code == 303
    assert confirm not in ada.get(PAGE).text
    assert ada.get(confirm).status_code == 404


def test_logs_are_plain_text_for_users_who_may_write(spaces_hub: RunningHub, ada: httpx.Client, space: str) -> None:
    set_stage(spaces_hub, space, Stage.RUNNING)
    append_log(spaces_hub, space, RUN, ["\x1b[31mred\x1b[0m <script>alert(1)</script> \u202egpj", "second"])
    append_log(spaces_hub, space, BUILD, ["Collecting gradio"])
    page = ada.get(PAGE).text
    assert "red &lt;script&gt;alert(1)&lt;/script&gt; gpj" in page
    assert "Collecting gradio" in ada.get(f"{PAGE}?log=build").text
    live = ada.get(f"{PAGE}/live?log=run&after=1").text
    assert ("second" in live, "red" in live) == (True, False)
    for odd in ("log=x&after=-1", "after=" + "9" * 30, "log=build&after=٣"):
        assert ada.get(f"{PAGE}/live?{odd}").status_code == 200, odd
    with browser_of(spaces_hub) as visitor:
        page = visitor.get(PAGE).text
        assert ("Running" in page, "script&gt;" in page, "Secrets" in page) == (True, False, False)
        assert "script&gt;" not in visitor.get(f"{PAGE}/live?log=run").text


def test_page_says_why_nothing_runs(spaces_hub: RunningHub, user: User, plain_hub: RunningHub) -> None:
    with api(spaces_hub, create_token(spaces_hub, user)) as client, browser_of(spaces_hub) as visitor:
        create_space(client, "ada/image", sdk="docker")
        assert "This Space is stored, not run." in visitor.get("/spaces/ada/image/app").text
    owner = create_user(plain_hub, "ada")
    with (
        api(plain_hub, create_token(plain_hub, owner)) as client,
        browser_of(plain_hub, owner) as browser,
    ):
        create_space(client)
        page = browser.get(PAGE).text
        assert ("This hub does not run Spaces" in page, "Set secret" in page) == (True, True)


def test_docs_say_that_the_hub_can_run_a_receiver(spaces_hub: RunningHub, plain_hub: RunningHub) -> None:
    for each, is_said in ((spaces_hub, True), (plain_hub, False)):
        with browser_of(each) as visitor:
            assert ("/hosted/you/your-space/" in visitor.get("/docs/webhooks").text) is is_said


def test_operator_stops_a_space_and_lets_another_never_sleep(
    spaces_hub: RunningHub, ada: httpx.Client, user: User, space: str
) -> None:
    with browser_of(spaces_hub, create_user(spaces_hub, "olga", operator=True)) as operator:
        path = "/operator/spaces"
        assert NAME not in operator.get(path).text
        lease_space(spaces_hub, space)
        set_stage(spaces_hub, space, Stage.RUNNING)
        page = operator.get(path).text
        assert (NAME in page, "1.1 GB of memory" in page) == (True, True)
        submit(operator, path, f"{path}/{NAME}/sleep", hours="")
        assert find_space(spaces_hub, space).sleep_seconds is None
        assert "Never (set by the operator)" in ada.get(PAGE).text
        # The owner's form changes nothing while it shows the operator's decision.
        submit(ada, PAGE, f"{PAGE}/sleep", seconds="never")
        assert find_space(spaces_hub, space).sleep_seconds is None
        submit(operator, path, f"{path}/{NAME}/sleep", hours="96")
        assert find_space(spaces_hub, space).sleep_seconds == 96 * 3600
        submit(operator, path, f"{path}/{NAME}/sleep", hours="0.0166667")
        assert find_space(spaces_hub, space).sleep_seconds == 60
        assert 'value="0.0166667"' in operator.get(path).text
        for wrong in ("0", "1e3", "0x1", "9" * 9):
            assert submit(operator, path, f"{path}/{NAME}/sleep", hours=wrong).status_code == 422
        submit(operator, path, f"{path}/{NAME}/stop")
        assert find_space(spaces_hub, space).wanted == "stop"
        page = ada.get(PAGE).text
        assert ("operator of this hub stopped" in page, "Restart" in page) == (True, False)
        # The owner cannot start it again, not even through a pause.
        with api(spaces_hub, create_token(spaces_hub, user)) as client:
            for action in ("pause", "restart"):
                assert client.post(f"/api/spaces/{NAME}/{action}").status_code == 403
        assert NAME in operator.get(f"{path}?show=all").text
        submit(operator, f"{path}?show=all", f"{path}/{NAME}/start")
        assert find_space(spaces_hub, space).wanted == "run"
    assert ada.get("/operator/spaces").status_code == 403


def test_running_space_of_a_renamed_owner_gets_a_new_version(
    spaces_hub: RunningHub, ada: httpx.Client, space: str
) -> None:
    lease_space(spaces_hub, space)
    set_stage(spaces_hub, space, Stage.RUNNING)
    before = find_space(spaces_hub, space)
    assert submit(ada, "/settings/profile", "/settings/rename", username="lovelace").status_code == 303
    after = find_space(spaces_hub, space)
    # The app knows its name. It serves until the new one does.
    assert (after.version, after.stage) == (before.version + 1, "RUNNING_BUILDING")
    assert "lovelace" in ada.get("/spaces/lovelace/listener/app").text


def test_space_that_is_built_while_its_owner_is_renamed_gets_a_new_version(
    spaces_hub: RunningHub, ada: httpx.Client, space: str
) -> None:
    before = find_space(spaces_hub, space)
    assert before.stage == "BUILDING"
    assert submit(ada, "/settings/profile", "/settings/rename", username="lovelace").status_code == 303
    # The build may have read the old name.
    assert find_space(spaces_hub, space).version == before.version + 1


def test_stopped_space_says_so_after_its_sdk_changed(
    spaces_hub: RunningHub, ada: httpx.Client, user: User, space: str
) -> None:
    with browser_of(spaces_hub, create_user(spaces_hub, "olga", operator=True)) as operator:
        submit(operator, "/operator/spaces?show=all", f"/operator/spaces/{NAME}/stop")
    with api(spaces_hub, create_token(spaces_hub, user)) as client:
        for sdk in ("docker", "python"):
            create_commit(client, NAME, {"README.md": f"---\nsdk: {sdk}\n---\n".encode()}, repo_type="space")
        assert client.post(f"/api/spaces/{NAME}/restart").status_code == 403
    assert find_space(spaces_hub, space).wanted == "stop"
    assert "operator of this hub stopped" in ada.get(PAGE).text
