"""A receiver with `ack="before"`, killed with -9 repeatedly while it receives deliveries."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.processes import until
from tests.faults.receivers import Receiver, Sender

pytestmark = pytest.mark.faults


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(tmp_path)
    try:
        yield receiver
    finally:
        receiver.close()


def test_kill_9_of_the_receiver_loses_no_delivery(receiver: Receiver, fault_count: int) -> None:
    chance = random.Random(fault_count)
    receiver.start()
    sender = Sender(receiver.url).start()
    try:
        for _ in range(fault_count):
            sender.wait_for(chance.randint(1, 30))
            receiver.kill()
            receiver.start()
        sender.wait_for(10)
    finally:
        sender.stop()
    until(lambda: not receiver.ids_in_state("waiting", "running"))
    assert receiver.stop() == 0
    assert not sender.refused
    receiver.check(sender.acknowledged)
    assert fault_count < 20 or receiver.interrupted, "no handler was running at any kill, so this test tested nothing"
