"""What was read lately is kept within bounds."""

from hubgate.server.hub.git.objects import SizedCache


def test_the_least_recently_used_goes_first() -> None:
    recent: SizedCache[str, str] = SizedCache(most=3 * 700, most_each=100)
    for key in "abc":
        recent.add(key, key.upper(), 100)
    assert recent.get("a") == "A"
    recent.add("d", "D", 100)
    assert [recent.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_what_is_large_is_not_kept() -> None:
    recent: SizedCache[str, bytes] = SizedCache(most=10_000, most_each=100)
    recent.add("large", b"x" * 101, 101)
    recent.add("small", b"x" * 100, 100)
    assert (recent.get("large"), recent.get("small")) == (None, b"x" * 100)


def test_many_small_ones_are_bounded_too() -> None:
    recent: SizedCache[int, None] = SizedCache(most=10_000, most_each=100)
    for number in range(1000):
        recent.add(number, None, 0)
    assert len(recent) <= 10_000 // 600
