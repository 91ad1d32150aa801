"""Where content is stored: the values of the settings, and the variables of AWS tools for credentials and endpoint."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.errors import StartupError
from hubgate.server.objects.s3.signatures import Address, Credentials, encoded_path

FOLDER = "folder"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_PREFIX = re.compile(r"[A-Za-z0-9._/-]*\Z")
_EXPECTED = "expected folder or an address such as s3://bucket/prefix"


class S3Location(Struct, frozen=True):
    """A bucket and a prefix in it, at an endpoint. `by_host`: the bucket is part of the host name."""

    bucket: str
    prefix: str
    endpoint: str
    by_host: bool = False

    @property
    def name(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def object_name(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def key(self, object_name: str) -> str:
        return object_name.removeprefix(f"{self.prefix}/") if self.prefix else object_name

    def address(self, key: str | None, endpoint: str = "") -> Address:
        """The address of an object; of the bucket, if `key` is None."""
        parts = urlsplit(endpoint or self.endpoint)
        path = "" if key is None else "/" + self.object_name(key)
        if self.by_host:
            return Address(parts.scheme, f"{self.bucket}.{parts.netloc}", parts.path + encoded_path(path or "/"))
        return Address(parts.scheme, parts.netloc, parts.path + encoded_path(f"/{self.bucket}{path}"))


def parse_url(value: str) -> str:
    """Parse the setting: empty for the data folder."""
    found = parse_former_url(value)
    return "" if found == FOLDER else found


def parse_former_url(value: str) -> str:
    """Parse the setting of a former store: empty for none."""
    text = value.strip()
    if text in ("", FOLDER):
        return text
    parts = urlsplit(text)
    if parts.scheme != "s3" or parts.query or parts.fragment or _BUCKET.match(parts.netloc) is None:
        raise ValueError(f"{_EXPECTED}, not {value!r}")
    prefix = parts.path.strip("/")
    if _PREFIX.match(prefix) is None or any(word in ("", ".", "..") for word in prefix.split("/") if prefix):
        raise ValueError(f"the prefix may have letters, digits, dots, dashes, underscores and slashes, not {prefix!r}")
    return f"s3://{parts.netloc}/{prefix}".rstrip("/")


def endpoint_url(value: str) -> str:
    """Parse the address of a store, without a slash at the end; empty if there is none."""
    text = value.strip().rstrip("/")
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc):
        raise ValueError("expected an address such as https://s3.example.org")
    if parts.query or parts.fragment:
        raise ValueError("the address must not have a query or fragment")
    # Raises if the port is not a number up to 65535.
    _ = parts.port
    return text


def s3_location(url: str, environment: Mapping[str, str]) -> S3Location:
    parts = urlsplit(url)
    given = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
    try:
        endpoint = endpoint_url(given)
    except ValueError as error:
        raise StartupError(f"AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL: {error}") from None
    prefix = parts.path.strip("/")
    if endpoint:
        return S3Location(parts.netloc, prefix, endpoint)
    # The certificate of AWS does not cover bucket names with dots.
    by_host = "." not in parts.netloc
    return S3Location(parts.netloc, prefix, f"https://s3.{region(environment)}.amazonaws.com", by_host)


def region(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"


def credentials(environment: Mapping[str, str]) -> Credentials:
    access_key, secret_key = environment.get("AWS_ACCESS_KEY_ID", ""), environment.get("AWS_SECRET_ACCESS_KEY", "")
    if not access_key or not secret_key:
        raise StartupError("HUBGATE_OBJECTS_URL needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
    return Credentials(access_key, secret_key, environment.get("AWS_SESSION_TOKEN", ""))
