from hubgate.server.scopes import BUILT_IN_SCOPES, join_scopes, parse_scopes


def test_there_are_fifteen_scopes_with_exact_names() -> None:
    assert {scope.name for scope in BUILT_IN_SCOPES} == {
        "openid",
        "profile",
        "email",
        "read-billing",
        "read-repos",
        "gated-repos",
        "contribute-repos",
        "write-repos",
        "manage-repos",
        "read-collections",
        "write-collections",
        "inference-api",
        "jobs",
        "webhooks",
        "write-discussions",
    }


def test_scope_parameter_is_split_on_spaces_only() -> None:
    assert parse_scopes("openid  email openid unknown") == ("openid", "email", "unknown")
    assert parse_scopes("  ") == ()
    assert parse_scopes("openid\temail") == ("openid\temail",)


def test_stored_scopes_have_one_order() -> None:
    assert join_scopes(["openid", "z-extra", "manage-repos", "a-extra"]) == "manage-repos openid a-extra z-extra"
