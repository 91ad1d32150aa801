"""`hubgate admin quota`: exceptions from the default quota."""

import pytest
from tests.bed.operator import Operator


def test_quota_is_set_shown_and_reset(operator: Operator) -> None:
    operator.json("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified")
    operator.json("admin", "org", "create", "acme", "--owner", "ada")
    default = {"used": 0, "limit": 0, "isDefault": True}
    for name in ("ada", "acme"):
        assert operator.json("admin", "quota", "show", name) == {"name": name, **default}
        changed = operator.json("admin", "quota", "set", name, "1000000")
        assert changed == {"name": name, "used": 0, "limit": 1_000_000, "isDefault": False}
        assert operator.json("admin", "quota", "set", name, "0")["limit"] == 0
        assert operator.json("admin", "quota", "reset", name) == {"name": name, **default}


@pytest.mark.one_engine
def test_quota_of_nobody_is_rejected(operator: Operator) -> None:
    for arguments in (("show", "nobody"), ("set", "nobody", "5"), ("set", "ada", "much"), ("set", "ada", "-1")):
        assert operator.run("admin", "quota", *arguments).returncode != 0
