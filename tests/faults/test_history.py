"""The checker itself: a correct history passes, and each kind of violation is found."""

from dataclasses import replace

import pytest
from tests.faults.history import Change, DisabledPeriod, History, ReceivedRequest, violations

ONE, TWO = Change("ada/one", 1), Change("ada/one", 2)


def request(change: Change, webhook: str = "a", began: float = 1.0, **more: object) -> ReceivedRequest:
    created = ReceivedRequest(webhook, webhook, f"{webhook}{change.seq}", 1, change, b"body", began, began + 0.1)
    return replace(created, **more)  # type: ignore[arg-type]


CORRECT = History(
    committed=frozenset({ONE, TWO}),
    entitled={"a": frozenset({"ada/one"}), "b": frozenset()},
    received=[
        request(ONE),
        request(TWO, began=2.0),
        # Sent again, late and with the same id.
        request(ONE, began=3.0, attempt=2),
    ],
)


def with_requests(*received: ReceivedRequest) -> History:
    return replace(CORRECT, received=[*CORRECT.received, *received])


VIOLATING = {
    "never received": replace(CORRECT, received=[request(ONE)]),
    "which was not committed": with_requests(request(Change("ada/one", 3), began=4.0)),
    "without access to the repo": with_requests(request(ONE, "b")),
    "received a delivery for": with_requests(request(ONE, address="b", attempt=3, began=4.0)),
    "with 2 ids": with_requests(request(ONE, delivery="x", attempt=3, began=4.0)),
    "with 2 bodies": with_requests(request(ONE, body=b"other", attempt=3, began=4.0)),
    "is the id of 2 deliveries": with_requests(request(ONE, delivery="a2", attempt=3, began=4.0)),
    "were sent to a in the order [2, 1]": replace(CORRECT, received=[request(ONE, began=2.0), request(TWO, began=1.0)]),
    "9 concurrent requests": with_requests(
        *(request(ONE, began=5.0 + number / 100, ended=6.0, attempt=number) for number in range(2, 11))
    ),
    "was disabled and received": replace(CORRECT, disabled_periods=[DisabledPeriod("a", 0.5, 2.5)]),
}


def test_correct_history_has_no_violations() -> None:
    assert violations(CORRECT) == []


@pytest.mark.parametrize("text", VIOLATING)
def test_each_violation_is_found(text: str) -> None:
    assert any(text in violation for violation in violations(VIOLATING[text])), violations(VIOLATING[text])


def test_permitted_histories_have_no_violations() -> None:
    """A second attempt may overtake; eight concurrent requests are allowed; changes while disabled are not missing."""
    assert violations(replace(CORRECT, received=[request(TWO, began=1.0), request(ONE, began=2.0, attempt=2)])) == []
    eight = [request(ONE, began=5.0 + number / 100, ended=6.0, attempt=number + 2) for number in range(8)]
    assert violations(with_requests(*eight)) == []
    disabled = [DisabledPeriod("a", 1.5, 9.0, frozenset({TWO}))]
    assert violations(replace(CORRECT, received=[request(ONE)], disabled_periods=disabled)) == []
