"""The settings of the hub, read once, in order of precedence: flags, environment, `hubgate.toml`, defaults.

`docs/settings.md` describes each option; a test compares it with this module. An unknown or malformed option prevents
the start, with an error that names the option.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from hubgate.server import setting_values as values
from hubgate.server.errors import StartupError
from hubgate.server.objects import location
from hubgate.server.scopes import SCOPE_NAMES, Risk, Scope
from hubgate.server.storage import engines

PREFIX = "HUBGATE_"
# Variables of the client library, which share the prefix.
CLIENT_VARIABLES = {"HUBGATE_ENDPOINT", "HUBGATE_TOKEN", "HUBGATE_NO_EXPERIMENTAL_WARNING"}

Networks = tuple[IPv4Network | IPv6Network, ...]


def option(default: str, parse: values.Parse, meaning: str, secret: bool = False) -> Any:
    return field(metadata={"default": default, "parse": parse, "meaning": meaning}, repr=not secret)


@dataclass(frozen=True, kw_only=True)
class Settings:
    host: str = option("127.0.0.1", values.nonempty, "address to listen on")
    port: int = option("8000", values.port, "port to listen on")
    base_url: str = option("", values.base_url, "public address and issuer; http://127.0.0.1:{port} when empty")
    data_dir: Path = option("var", values.folder, "SQLite file, git repos, keys, mail")
    database_url: str = option("", engines.parse_url, "sqlite:///… or postgresql://…", secret=True)
    workers: int = option("1", values.whole_number(1, 64), "web processes")
    deliver: str = option(
        "child",
        values.one_of("child", "off"),
        "child: hubgate serve also runs the background process; off: run hubgate deliver separately",
    )
    server: str = option("granian", values.one_of("granian", "uvicorn"), "HTTP server: granian or uvicorn")
    egress_allow: Networks = option("", values.networks, "private CIDRs that outgoing requests may reach")
    cimd_allow_http_loopback: bool = option(
        "false", values.flag, "development: allow client metadata documents on http loopback; also needs egress_allow"
    )
    secret_key: str = option(
        "", values.secret_key, "comma-separated keys; the first encrypts and signs, all decrypt", secret=True
    )
    smtp_url: str = option(
        "",
        values.address("smtp", "smtps"),
        "server for outgoing mail; mail is written to files when empty",
        secret=True,
    )
    signup: str = option("open", values.one_of("open", "invite", "closed"), "sign-up: open, invite or closed")
    cli_client_ids: tuple[str, ...] = option(
        "hubgate-cli,26be6b09-91c5-47da-9861-d2d2bb7a7e36",
        values.comma_separated,
        "client IDs of first-party command-line tools",
    )
    trusted_proxies: Networks = option("", values.networks, "CIDRs whose X-Forwarded-For is trusted")
    metrics_listen: str = option("", values.listen_address, "host:port for Prometheus metrics; off when empty")
    egress_proxy: str = option("", values.address("http", "https"), "proxy for outgoing requests")
    mail_from: str = option("", values.mail_sender, "sender of mail, such as Our hub <hub@example.org>")
    delivery_retention_days: int = option(
        "30", values.whole_number(1, 36500), "days to retain events and finished deliveries"
    )
    audit_retention_days: int = option("0", values.whole_number(0, 36500), "days to retain audit entries; 0: forever")
    cimd_max_bytes: int = option("16384", values.whole_number(1024, 1 << 20), "largest client metadata document")
    cimd_device: bool = option("off", values.flag, "whether apps with a metadata document may use the device flow")
    dynamic_registration: str = option(
        "off",
        values.one_of("off", "on", "token"),
        "whether apps may register themselves: off, on, or token (with a token of the operator)",
    )
    regular_upload_max: int = option(
        "104857600", values.whole_number(0, 1 << 40), "largest file accepted in a commit body"
    )
    storage_quota: int = option(
        "0", values.whole_number(0, 1 << 50), "bytes of large files per user or organization; 0: no limit"
    )
    objects_url: str = option(
        "", location.parse_url, "store of large files: s3://bucket/prefix; the data folder when empty"
    )
    objects_former_url: str = option(
        "", location.parse_former_url, "store that large files are still read from: folder or s3://bucket/prefix"
    )
    objects_links: bool = option("on", values.flag, "clients download from the store; off: through the hub")
    objects_public_endpoint: str = option(
        "", location.endpoint_url, "where clients reach the store; when empty, where the hub does"
    )
    inference_upstream: str = option("", values.upstream, "service behind /v1; 501 when empty")
    jobs_upstream: str = option("", values.upstream, "service behind /api/jobs; 501 when empty")
    tunnel: bool = option("on", values.flag, "temporary links for receivers on laptops")
    tunnel_host: str = option("", values.tunnel_host, "host of the temporary links, each a subdomain of it")
    webhook_quota: int = option(
        "1000", values.whole_number(0, 1 << 40), "maximum deliveries triggered per webhook in 24 hours"
    )
    webhooks_per_owner: int = option("50", values.whole_number(0, 1 << 20), "maximum webhooks per user or organization")
    spaces_runner: str = option(
        "off", values.one_of("off", "bubblewrap"), "what runs Spaces: off (they are stored) or bubblewrap"
    )
    spaces_index: str = option(
        "", values.package_index, "package index for requirements of Spaces; that of pip when empty"
    )
    spaces_running: int = option("20", values.whole_number(1, 10_000), "Spaces that run at once on this machine")
    spaces_per_owner: int = option("5", values.whole_number(1, 10_000), "running Spaces per user or organization")
    spaces_cpu: int = option("100", values.whole_number(1, 10_000), "CPU time of a Space, in percent of one core")
    spaces_memory: int = option("1073741824", values.whole_number(1 << 26, 1 << 40), "bytes of memory of a Space")
    spaces_processes: int = option("128", values.whole_number(8, 1 << 16), "processes and threads of a Space")
    spaces_disk: int = option("2147483648", values.whole_number(1 << 26, 1 << 40), "bytes of disk of a Space")
    spaces_memory_together: int = option(
        "0", values.whole_number(0, 1 << 44), "bytes of memory of all Spaces; half of the machine's when 0"
    )
    spaces_disk_together: int = option(
        str(20 << 30), values.whole_number(1 << 26, 1 << 50), "bytes of disk for the packages of all Spaces"
    )
    guest_pull_requests: int = option(
        "20", values.whole_number(0, 1 << 20), "maximum open pull requests in a repo by a user who cannot write to it"
    )
    guest_bytes: int = option(
        "1073741824", values.whole_number(0, 1 << 50), "bytes a user may store in repos that the user cannot write to"
    )
    log: str = option("", values.log_format, "format of the log: text or json; when empty, text on a terminal only")
    subject_token_type_aliases: tuple[str, ...] = option(
        "", values.comma_separated, "additional spellings of the e-mail subject token type"
    )
    extra_scopes: tuple[Scope, ...] = ()
    raw: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secure(self) -> bool:
        """Whether browsers use TLS. Only the public address decides this, never a request's headers."""
        return self.base_url.startswith("https:")

    @property
    def runs_spaces(self) -> bool:
        return self.spaces_runner != "off"

    @property
    def memory_of_spaces(self) -> int:
        """The bytes that all Spaces together may use."""
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return self.spaces_memory_together or machine // 2

    @property
    def engine(self) -> engines.Engine:
        return engines.engine_of(self.database_url)


OPTIONS = tuple(item for item in fields(Settings) if "parse" in item.metadata)
KEYS = tuple(item.name for item in OPTIONS)


def load(flags: Mapping[str, str], environment: Mapping[str, str] = os.environ, config: Path | None = None) -> Settings:
    """Merge the sources and parse them. Keys of `flags` are field names; `config` must exist if it is given."""
    from_file, scopes = _read_file(config)
    from_environment = _read_environment(environment)
    raw = {key: item.metadata["default"] for key, item in zip(KEYS, OPTIONS, strict=True)}
    raw |= from_file | from_environment | dict(flags)
    return parse(raw, scopes)


def parse(raw: Mapping[str, str], extra_scopes: tuple[Scope, ...] = ()) -> Settings:
    parsed: dict[str, Any] = {}
    for item in OPTIONS:
        try:
            parsed[item.name] = item.metadata["parse"](raw[item.name])
        except ValueError as error:
            raise StartupError(f"{PREFIX}{item.name.upper()}: {error}") from error
    parsed["base_url"] = parsed["base_url"] or default_base_url(parsed["host"], parsed["port"])
    parsed["database_url"] = parsed["database_url"] or engines.default_url(parsed["data_dir"])
    return Settings(**parsed, extra_scopes=extra_scopes, raw=raw)


def default_base_url(host: str, port: int) -> str:
    """The loopback address of the address family that the hub listens on. A public address must be configured."""
    return f"http://[::1]:{port}" if ":" in host else f"http://127.0.0.1:{port}"


def _read_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in CLIENT_VARIABLES:
            continue
        key = variable.removeprefix(PREFIX).lower()
        if key not in KEYS or variable != variable.upper():
            raise StartupError(f"{variable} is not a setting of hubgate. {values.suggestion(key, KEYS, PREFIX)}")
        found[key] = value
    return found


def _read_file(config: Path | None) -> tuple[dict[str, str], tuple[Scope, ...]]:
    path = config or Path("hubgate.toml")
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if config is None:
            return {}, ()
        raise StartupError(f"Configuration file not found: {config}.") from None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartupError(f"Cannot read {path}: {error}") from error
    scopes = tuple(_extra_scope(row, path) for row in _rows(document.pop("extra_scopes", []), path))
    found = {}
    for key, value in document.items():
        if key not in KEYS:
            raise StartupError(f"{path}: {key} is not a setting of hubgate. {values.suggestion(key, KEYS)}")
        try:
            found[key] = values.from_toml(value)
        except ValueError as error:
            raise StartupError(f"{path}: {key}: {error}") from error
    return found, scopes


def _rows(value: Any, path: Path) -> list[Any]:
    if not isinstance(value, list):
        raise StartupError(f"{path}: write each extra scope as [[extra_scopes]] with name and text.")
    return value


def _extra_scope(row: Any, path: Path) -> Scope:
    complete = isinstance(row, dict) and set(row) == {"name", "text"} and all(isinstance(v, str) for v in row.values())
    if not complete:
        raise StartupError(f"{path}: each [[extra_scopes]] must have a name and a text, and nothing else.")
    if not values.is_scope_name(row["name"]) or row["name"] in SCOPE_NAMES:
        raise StartupError(f"{path}: {row['name']!r} cannot be the name of an extra scope.")
    return Scope(row["name"], Risk.CHANGES, row["text"])
