from hubgate.server.storage.sqltext import positional


def test_each_named_parameter_becomes_one_number() -> None:
    assert positional("SELECT :b, :a, :b WHERE x = :a") == ("SELECT $1, $2, $1 WHERE x = $2", ("b", "a"))


def test_literals_names_and_comments_are_not_changed() -> None:
    sql = "SELECT ':a', 'it''s :b', \":c\", x -- :d\nFROM t WHERE y = :e"
    assert positional(sql) == (sql.replace("= :e", "= $1"), ("e",))
