"""Settings: flags, else environment, else hubgate.toml, else the default; anything unknown stops the start."""

from pathlib import Path

import pytest
from tests.bed.processes import hubgate

from hubgate.server.errors import StartupError
from hubgate.server.settings import KEYS, load


def test_flags_override_environment_override_file_override_default(tmp_path: Path) -> None:
    config = tmp_path / "hub.toml"
    config.write_text('port = 1001\nworkers = 3\nsignup = "closed"\negress_allow = ["10.0.0.0/8", "127.0.0.0/8"]\n')
    settings = load({"port": "1003"}, {"HUBGATE_PORT": "1002", "HUBGATE_WORKERS": "2"}, config)
    assert (settings.port, settings.workers, settings.signup, settings.server) == (1003, 2, "closed", "granian")
    assert [str(network) for network in settings.egress_allow] == ["10.0.0.0/8", "127.0.0.0/8"]
    assert settings.base_url == "http://127.0.0.1:1003"


def test_client_variables_are_accepted() -> None:
    load({}, {"HUBGATE_ENDPOINT": "x", "HUBGATE_TOKEN": "y", "HUBGATE_NO_EXPERIMENTAL_WARNING": "1"})


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("HUBGATE_PRT", "1", "HUBGATE_PRT is not a setting of hubgate. Did you mean HUBGATE_PORT?"),
        ("HUBGATE_port", "1", "HUBGATE_port is not a setting"),
        ("HUBGATE_PORT", "ninety", "HUBGATE_PORT: expected a whole number from 0 to 65535, not 'ninety'"),
        ("HUBGATE_PORT", "99999", "HUBGATE_PORT: expected a whole number"),
        ("HUBGATE_SERVER", "apache", "HUBGATE_SERVER: expected granian or uvicorn, not 'apache'"),
        ("HUBGATE_BASE_URL", "hub.example", "HUBGATE_BASE_URL: expected an address such as"),
        ("HUBGATE_BASE_URL", "https://hub.example/path", "must not have a path"),
        ("HUBGATE_BASE_URL", "https://me@hub.example", "expected an address"),
        ("HUBGATE_BASE_URL", "https://hub.example:port", "HUBGATE_BASE_URL: "),
        ("HUBGATE_SECRET_KEY", "short", "at least 32 characters"),
        ("HUBGATE_SECRET_KEY", "x" * 40 + ",short", "at least 32 characters"),
        ("HUBGATE_DATABASE_URL", "mysql://x", "HUBGATE_DATABASE_URL: expected sqlite:///"),
        ("HUBGATE_DATABASE_URL", "sqlite:///:memory:", "expected sqlite:///"),
        ("HUBGATE_EGRESS_ALLOW", "10.0.0.1/8", "expected comma-separated CIDRs"),
        ("HUBGATE_DATABASE_URL", "postgresql://h:notaport/db", "HUBGATE_DATABASE_URL: the port"),
        ("HUBGATE_DATABASE_URL", "postgresql://h:99999/db", "HUBGATE_DATABASE_URL: the port"),
        ("HUBGATE_DATABASE_URL", "postgresql://[::1/db", "HUBGATE_DATABASE_URL: "),
        ("HUBGATE_HOST", "", "HUBGATE_HOST: must not be empty"),
        ("HUBGATE_DATA_DIR", " ", "HUBGATE_DATA_DIR: must not be empty"),
        ("HUBGATE_SMTP_URL", "mail.example", "HUBGATE_SMTP_URL: expected an address such as smtp://host"),
        ("HUBGATE_SMTP_URL", "smtp://mail.example:99999", "HUBGATE_SMTP_URL: Port out of range"),
        ("HUBGATE_MAIL_FROM", "somebody", "HUBGATE_MAIL_FROM: expected an address such as hub@example.org"),
        ("HUBGATE_MAIL_FROM", "Our hub <hub>", "HUBGATE_MAIL_FROM: expected an address"),
        ("HUBGATE_JOBS_UPSTREAM", "foo", "HUBGATE_JOBS_UPSTREAM: expected an address such as http://127"),
        ("HUBGATE_TUNNEL", "perhaps", "expected true or false"),
        ("HUBGATE_TUNNEL_HOST", "https://tunnels.example.org", "expected a host name"),
        ("HUBGATE_TUNNEL_HOST", "10.0.0.1", "expected a host name"),
        ("HUBGATE_METRICS_LISTEN", "9000", "expected host:port"),
        ("HUBGATE_SPACES_INDEX", "pypi.example", "expected an address such as http://host"),
        ("HUBGATE_SPACES_INDEX", "https://me:x@pypi.example/simple", "must not contain a user or password"),
    ],
)
def test_a_bad_value_stops_the_start_and_is_named(variable: str, value: str, says: str) -> None:
    with pytest.raises(StartupError) as refusal:
        load({}, {variable: value})
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("port = ", "Cannot read"),
        ("prot = 1", "prot is not a setting of hubgate. Did you mean port?"),
        ("port = 1.5", "port: expected a string, a number"),
        ("extra_scopes = 3", "[[extra_scopes]]"),
        ("[[extra_scopes]]\nname = 'x y'\ntext = 't'", "cannot be the name of an extra scope"),
        ("[[extra_scopes]]\nname = 'email'\ntext = 't'", "cannot be the name of an extra scope"),
        ("[[extra_scopes]]\nname = 'audit'", "must have a name and a text"),
    ],
)
def test_a_broken_file_stops_the_start_and_is_named(tmp_path: Path, text: str, says: str) -> None:
    config = tmp_path / "hub.toml"
    config.write_text(text)
    with pytest.raises(StartupError) as refusal:
        load({}, {}, config)
    assert says in str(refusal.value)
    assert str(config) in str(refusal.value)


def test_extra_scopes_come_from_the_file(tmp_path: Path) -> None:
    config = tmp_path / "hub.toml"
    config.write_text("[[extra_scopes]]\nname = 'audit'\ntext = 'Read the audit log'")
    (scope,) = load({}, {}, config).extra_scopes
    assert (scope.name, scope.text) == ("audit", "Read the audit log")


def test_secrets_do_not_show_in_a_settings_repr() -> None:
    shown = repr(
        load({"secret_key": "k" * 40, "database_url": "postgresql://hub:pw@db/x", "smtp_url": "smtp://u:pw@m"})
    )
    assert "kkkk" not in shown
    assert "pw" not in shown


def test_every_setting_is_a_flag(tmp_path: Path) -> None:
    text = hubgate("serve", "--help", cwd=tmp_path).stdout
    for key in KEYS:
        assert f"--{key.replace('_', '-')} " in text


def test_config_file_is_found_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    (tmp_path / "hubgate.toml").write_text("server = 'apache'")
    found = hubgate("migrate", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (1, "error: HUBGATE_SERVER: expected granian or uvicorn, not 'apache'\n")
    missing = hubgate("migrate", "--config", "other.toml", cwd=tmp_path)
    assert (missing.returncode, missing.stderr) == (1, "error: Configuration file not found: other.toml.\n")
