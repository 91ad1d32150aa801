import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from hubgate.server.clock import SECOND, iso
from hubgate.server.ids import is_id, new_id


def test_ids_are_24_hex_and_ordered_by_microsecond() -> None:
    made = [new_id(moment) for moment in (SECOND, SECOND + 1, 2 * SECOND - 1, 2 * SECOND, 4_000_000_000 * SECOND)]
    assert made == sorted(made)
    assert all(is_id(one) for one in made)
    assert not is_id(made[0].upper() + "x")
    assert len({new_id(1) for _ in range(1000)}) == 1000


def test_a_forked_process_creates_other_ids() -> None:
    program = (
        "import os; from hubgate.server.ids import new_id, new_request_id; child = os.fork();"
        "os.write(1, f'{new_id(1)} {new_request_id()} '.encode()); child and os.wait()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert len(set(done.stdout.split())) == 4


@given(st.integers(0, 4_102_444_800 * SECOND))
def test_times_are_utc_with_z(moment: int) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", iso(moment))


def test_known_time_is_formatted() -> None:
    assert iso(1_790_000_000_123_456) == "2026-09-21T14:13:20.123Z"
