"""The badge on the audit log's page covers the batches that are shown, wherever they are in the chain."""

from collections.abc import Callable

import pytest
from tests.bed.audit_log import seal_all
from tests.bed.people import browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM, EntryType
from hubgate.server.audit.record import record
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PAGE = "/organizations/acme/settings/audit-log"
# After the creation in batch 1, one batch for each entry: removals are in 3, 4 and 7.
LATER = [
    EntryType.ORG_ADD_USER,
    EntryType.ORG_REMOVE_USER,
    EntryType.ORG_REMOVE_USER,
    EntryType.ORG_ADD_USER,
    EntryType.ORG_ADD_USER,
    EntryType.ORG_REMOVE_USER,
    EntryType.ORG_ADD_USER,
]
REMOVALS = "type:org.remove_user"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    """The admin of an organization with eight sealed batches."""
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)

    async def add(opened: Hub, kind: EntryType) -> None:
        await opened.db.write(lambda tx: record(tx, acme.id, kind, "did it", SYSTEM, opened.clock()))
        await seal_all(opened)

    hub.call(seal_all)
    for kind in LATER:
        hub.clock.advance(1)
        hub.call(lambda opened, kind=kind: add(opened, kind))
    return ada


@pytest.fixture
def is_broken(hub: RunningHub, ada: User) -> Callable[[str], bool]:
    def look(q: str) -> bool:
        with browser_of(hub, ada) as browser:
            page = browser.get(PAGE, params={"q": q}).text
        assert ("Sealed up to" in page) is not ("✕</span> Broken" in page)
        return "Broken" in page

    return look


def run_sql(hub: RunningHub, sql: str, seq: int) -> None:
    assert hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(sql, {"seq": seq}))) == 1


@pytest.mark.parametrize("seq", [1, 2, 3, 4, 5, 6, 7, 8])
def test_changed_entry_is_detected_where_it_is_shown(
    hub: RunningHub, is_broken: Callable[[str], bool], seq: int
) -> None:
    assert not is_broken("")
    assert not is_broken(REMOVALS)
    run_sql(hub, "UPDATE audit_entries SET ip = '::2' WHERE batch = :seq", seq)
    assert is_broken("")
    # The newest batch is always verified.
    assert is_broken(REMOVALS) is (seq in (3, 4, 7, 8))


@pytest.mark.parametrize("seq", [1, 2, 3, 4, 5, 6, 7, 8])
def test_missing_batch_is_detected_where_the_chain_is_shown(
    hub: RunningHub, is_broken: Callable[[str], bool], seq: int
) -> None:
    run_sql(hub, "DELETE FROM audit_batches WHERE seq = :seq", seq)
    assert is_broken("")
    # Those that are shown, and those whose hash they continue.
    assert is_broken(REMOVALS) is (seq in (2, 3, 4, 6, 7, 8))
