"""Both HTTP servers notice that a client disconnected, and cancel its reads."""

from tests.bed.disconnecting_clients import slow_yaml, statuses_after_disconnect
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of
from tests.bed.running_hub import RunningHub

CLIENTS = 8


def test_text_is_not_parsed_for_a_disconnected_client(on_each_server: RunningHub) -> None:
    ended = statuses_after_disconnect(on_each_server, ["/api/validate-yaml"] * CLIENTS, slow_yaml())
    assert ended.count(200) <= CLIENTS // 2
    assert '"level":"error"' not in on_each_server.log


def test_change_is_completed_for_a_disconnected_client(on_each_server: RunningHub) -> None:
    token = create_token(on_each_server, create_user(on_each_server, "ada"))
    with api(on_each_server, token) as ada:
        create_repo(ada, "tiny")
        first = head_of(ada, "ada/tiny")
        targets = [f"/api/models/ada/tiny/branch/b{number}" for number in range(CLIENTS)]
        ended = statuses_after_disconnect(on_each_server, targets, b"{}", authorization=f"Bearer {token}")
        assert ended == [200] * CLIENTS
        assert create_commit(ada, "ada/tiny", {"f": b"1"}) != first
        assert all(head_of(ada, "ada/tiny", f"b{number}") == first for number in range(CLIENTS))
