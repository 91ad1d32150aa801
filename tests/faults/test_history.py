"""The checker itself: a correct history passes, and each kind of violation is found."""

from dataclasses import replace

import pytest
from tests.faults.history import (
    Change,
    DisabledPeriod,
    Disturbance,
    History,
    Incident,
    ReceivedRequest,
    violations,
)

ONE, TWO = Change("ada/one", 1), Change("ada/one", 2)


def request(change: Change, webhook: str = "a", began: float = 1.0, **more: object) -> ReceivedRequest:
    created = ReceivedRequest(webhook, webhook, f"{webhook}{change.seq}", 1, change, b"body", began, began + 0.1)
    return replace(created, **more)  # type: ignore[arg-type]


CORRECT = History(
    committed=frozenset({ONE, TWO}),
    entitled={"a": frozenset({"ada/one"}), "b": frozenset()},
    received=[
        request(ONE, status=500),
        request(TWO, began=2.0),
        # Sent again, late and with the same id.
        request(ONE, began=3.0, attempt=2, status=500),
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
    "as attempts 1 and 1, 2.90 s apart": with_requests(request(ONE, began=4.0)),
    "as attempts 1 and 2": with_requests(request(TWO, began=4.0, attempt=2)),
    "still was in flight": with_requests(
        request(TWO, began=2.5, ended=4.0, attempt=2), request(TWO, began=3.0, attempt=3)
    ),
    "were sent to a in the order [2, 1]": replace(CORRECT, received=[request(ONE, began=2.0), request(TWO, began=1.0)]),
    "9 concurrent requests": with_requests(
        *(
            request(ONE, began=5.0 + number / 100, ended=6.0, attempt=number, delivery=str(number))
            for number in range(2, 11)
        )
    ),
    "was disabled and received": replace(CORRECT, disabled_periods=[DisabledPeriod("a", -2.5, 2.5)]),
}


def test_correct_history_has_no_violations() -> None:
    assert violations(CORRECT) == []


@pytest.mark.parametrize("text", VIOLATING)
def test_each_violation_is_found(text: str) -> None:
    assert any(text in violation for violation in violations(VIOLATING[text])), violations(VIOLATING[text])


def test_permitted_histories_have_no_violations() -> None:
    """A second attempt may overtake; eight concurrent requests are allowed; changes while disabled are not missing."""
    assert violations(replace(CORRECT, received=[request(TWO, began=1.0), request(ONE, began=2.0, attempt=2)])) == []
    eight = [Change("ada/one", number) for number in range(3, 11)]
    at_once = [request(change, began=5.0 + change.seq / 100, ended=6.0) for change in eight]
    assert violations(replace(with_requests(*at_once), committed=CORRECT.committed | set(eight))) == []
    dropped = [request(ONE, began=0.5, status=None, was_dropped=True), *CORRECT.received]
    assert violations(replace(CORRECT, received=dropped)) == []
    disabled = [DisabledPeriod("a", 1.5, 9.0, frozenset({TWO}))]
    assert violations(replace(CORRECT, received=[request(ONE)], disabled_periods=disabled)) == []


# The second request is sent again under the same number.
REPEATED = with_requests(request(TWO, began=20.0))
ABORTED = replace(CORRECT, received=[request(ONE), request(TWO, ended=6.5, status=None), request(TWO, began=20.0)])


@pytest.mark.parametrize(
    ("history", "disturbance", "is_permitted"),
    [
        (REPEATED, Disturbance(Incident.DIED, 2.05, 2.05), True),
        (REPEATED, Disturbance(Incident.FROZE, 1.0, 19.0), True),
        (REPEATED, Disturbance(Incident.CUT_OFF, 2.5, 19.0), True),
        # Its result was stored by then.
        (REPEATED, Disturbance(Incident.DIED, 19.0, 19.0), False),
        # It was over before the request.
        (REPEATED, Disturbance(Incident.DIED, 1.5, 1.6), False),
        # A process that stops stores the results of answered requests, and waits for responses.
        (REPEATED, Disturbance(Incident.STOPPING, 2.05, 2.05), False),
        (ABORTED, Disturbance(Incident.STOPPING, 2.05, 2.05), True),
        (ABORTED, Disturbance(Incident.STOPPING, 5.0, 5.0), False),
    ],
)
def test_duplicates_need_a_cause(history: History, disturbance: Disturbance, is_permitted: bool) -> None:
    assert (violations(replace(history, disturbances=[disturbance])) == []) == is_permitted
