"""The cache of recently read values is bounded."""

from hubgate.server.hub.git.objects import SizedCache


def test_least_recently_used_is_dropped_first() -> None:
    recent: SizedCache[str, str] = SizedCache(max_bytes=3 * 700, max_entry_bytes=100)
    for key in "abc":
        recent.add(key, key.upper(), 100)
    assert recent.get("a") == "A"
    recent.add("d", "D", 100)
    assert [recent.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_large_values_are_not_cached() -> None:
    recent: SizedCache[str, bytes] = SizedCache(max_bytes=10_000, max_entry_bytes=100)
    recent.add("large", b"x" * 101, 101)
    recent.add("small", b"x" * 100, 100)
    assert (recent.get("large"), recent.get("small")) == (None, b"x" * 100)


def test_number_of_small_values_is_bounded() -> None:
    recent: SizedCache[int, None] = SizedCache(max_bytes=10_000, max_entry_bytes=100)
    for number in range(1000):
        recent.add(number, None, 0)
    assert len(recent) <= 10_000 // 600
