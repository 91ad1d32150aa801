"""The cache of recently read values is bounded."""

from hubgate.server.hub.git.recent import Recent


def test_least_recently_used_is_dropped_first() -> None:
    recent: Recent[str, str] = Recent(most=3 * 700, most_each=100)
    for key in "abc":
        recent.keep(key, key.upper(), 100)
    assert recent.get("a") == "A"
    recent.keep("d", "D", 100)
    assert [recent.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_large_values_are_not_cached() -> None:
    recent: Recent[str, bytes] = Recent(most=10_000, most_each=100)
    recent.keep("large", b"x" * 101, 101)
    recent.keep("small", b"x" * 100, 100)
    assert (recent.get("large"), recent.get("small")) == (None, b"x" * 100)


def test_number_of_small_values_is_bounded() -> None:
    recent: Recent[int, None] = Recent(most=10_000, most_each=100)
    for number in range(1000):
        recent.keep(number, None, 0)
    assert len(recent) <= 10_000 // 600
