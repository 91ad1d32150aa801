"""Byte counts as shown on pages."""

import pytest

from hubgate.server.web.rendering import format_size


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (1550, "1.6 kB"),
        (99_949, "99.9 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (20_000_000, "20.0 MB"),
        (50_000_000_000, "50.0 GB"),
        (10**21, "1000000 PB"),
    ],
)
def test_sizes_are_shown_with_units(count: int, said: str) -> None:
    assert format_size(count) == said
