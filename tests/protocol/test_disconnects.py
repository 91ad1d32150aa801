"""Both HTTP servers notice that a client disconnected, and cancel its reads."""

from tests.bed.breaking_off import broken_off, slow_yaml
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import committed, head_of, make_repo
from tests.bed.running import RunningHub

CLIENTS = 8


def test_text_is_not_parsed_for_a_disconnected_client(on_each_server: RunningHub) -> None:
    ended = broken_off(on_each_server, ["/api/validate-yaml"] * CLIENTS, slow_yaml())
    assert ended.count(200) <= CLIENTS // 2
    assert '"level":"error"' not in on_each_server.log


def test_change_is_completed_for_a_disconnected_client(on_each_server: RunningHub) -> None:
    token = make_token(on_each_server, make_user(on_each_server, "ada"))
    with api(on_each_server, token) as ada:
        make_repo(ada, "tiny")
        first = head_of(ada, "ada/tiny")
        targets = [f"/api/models/ada/tiny/branch/b{number}" for number in range(CLIENTS)]
        ended = broken_off(on_each_server, targets, b"{}", authorization=f"Bearer {token}")
        assert ended == [200] * CLIENTS
        assert committed(ada, "ada/tiny", {"f": b"1"}) != first
        assert all(head_of(ada, "ada/tiny", f"b{number}") == first for number in range(CLIENTS))
