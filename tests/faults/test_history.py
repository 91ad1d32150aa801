"""The checker itself: a correct history passes, and each kind of violation is found."""

from dataclasses import replace

import pytest
from tests.faults.history import Arrival, Change, History, Silence, complaints

ONE, TWO = Change("ada/one", 1), Change("ada/one", 2)


def arrival(change: Change, webhook: str = "a", began: float = 1.0, **more: object) -> Arrival:
    made = Arrival(webhook, webhook, f"{webhook}{change.seq}", 1, change, b"body", began, began + 0.1)
    return replace(made, **more)  # type: ignore[arg-type]


RIGHT = History(
    committed=frozenset({ONE, TWO}),
    entitled={"a": frozenset({"ada/one"}), "b": frozenset()},
    arrivals=[
        arrival(ONE),
        arrival(TWO, began=2.0),
        # Sent again, late and with the same id.
        arrival(ONE, began=3.0, attempt=2),
    ],
)


def with_arrivals(*arrivals: Arrival) -> History:
    return replace(RIGHT, arrivals=[*RIGHT.arrivals, *arrivals])


WRONG = {
    "never heard of": replace(RIGHT, arrivals=[arrival(ONE)]),
    "which never happened": with_arrivals(arrival(Change("ada/one", 3), began=4.0)),
    "and may not": with_arrivals(arrival(ONE, "b")),
    "was sent what is": with_arrivals(arrival(ONE, address="b", attempt=3, began=4.0)),
    "under 2 ids": with_arrivals(arrival(ONE, delivery="x", attempt=3, began=4.0)),
    "with 2 bodies": with_arrivals(arrival(ONE, body=b"other", attempt=3, began=4.0)),
    "is of 2 deliveries": with_arrivals(arrival(ONE, delivery="a2", attempt=3, began=4.0)),
    "came to a as [2, 1]": replace(RIGHT, arrivals=[arrival(ONE, began=2.0), arrival(TWO, began=1.0)]),
    "9 requests at once": with_arrivals(
        *(arrival(ONE, began=5.0 + number / 100, ended=6.0, attempt=number) for number in range(2, 11))
    ),
    "was disabled and heard": replace(RIGHT, silences=[Silence("a", 0.5, 2.5)]),
}


def test_correct_history_has_no_complaints() -> None:
    assert complaints(RIGHT) == []


@pytest.mark.parametrize("said", WRONG)
def test_each_violation_is_found(said: str) -> None:
    assert any(said in complaint for complaint in complaints(WRONG[said])), complaints(WRONG[said])


def test_permitted_histories_have_no_complaints() -> None:
    """A second attempt may overtake; eight concurrent ones are allowed; nothing is missing while disabled."""
    assert complaints(replace(RIGHT, arrivals=[arrival(TWO, began=1.0), arrival(ONE, began=2.0, attempt=2)])) == []
    eight = [arrival(ONE, began=5.0 + number / 100, ended=6.0, attempt=number + 2) for number in range(8)]
    assert complaints(with_arrivals(*eight)) == []
    silent = [Silence("a", 1.5, 9.0, frozenset({TWO}))]
    assert complaints(replace(RIGHT, arrivals=[arrival(ONE)], silences=silent)) == []
