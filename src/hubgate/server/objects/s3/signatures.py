"""AWS Signature Version 4, for requests (in a header) and for links (in the query).

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from urllib.parse import quote

from msgspec import Struct

from hubgate.server.clock import SECOND

_ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()


class Credentials(Struct, frozen=True):
    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


class Address(Struct, frozen=True):
    """Where an object is: scheme and host, and the encoded path. `host` includes a port that is not the default."""

    scheme: str
    host: str
    path: str

    def url(self, query: str = "") -> str:
        return f"{self.scheme}://{self.host}{self.path}" + (f"?{query}" if query else "")


class Signer(Struct, frozen=True):
    credentials: Credentials
    region: str

    def headers(
        self, method: str, address: Address, query: Mapping[str, str], headers: Mapping[str, str], digest: str, now: int
    ) -> dict[str, str]:
        """All headers of a request, signed. `headers` have lower-case names; `digest` is the SHA-256 of the body."""
        stamp = _stamp(now)
        signed = {**headers, "host": address.host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
        if self.credentials.session_token:
            signed["x-amz-security-token"] = self.credentials.session_token
        names = ";".join(sorted(signed))
        canonical = _canonical(method, address.path, encoded(query), signed, digest)
        authorization = (
            f"{_ALGORITHM} Credential={self.credentials.access_key}/{self._scope(stamp)}, "
            f"SignedHeaders={names}, Signature={self._signature(stamp, canonical)}"
        )
        return {**signed, "authorization": authorization}

    def link(
        self,
        method: str,
        address: Address,
        query: Mapping[str, str],
        seconds: int,
        now: int,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """An address that grants this request to anyone for so many seconds, with exactly these `headers`, if any."""
        fixed = {**headers, "host": address.host}
        stamp = _stamp(now)
        signed = {
            **query,
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{self.credentials.access_key}/{self._scope(stamp)}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": ";".join(sorted(fixed)),
        }
        if self.credentials.session_token:
            signed["X-Amz-Security-Token"] = self.credentials.session_token
        canonical = _canonical(method, address.path, encoded(signed), fixed, UNSIGNED)
        return address.url(f"{encoded(signed)}&X-Amz-Signature={self._signature(stamp, canonical)}")

    def _scope(self, stamp: str) -> str:
        return f"{stamp[:8]}/{self.region}/s3/aws4_request"

    def _signature(self, stamp: str, canonical: str) -> str:
        key = f"AWS4{self.credentials.secret_key}".encode()
        for word in (stamp[:8], self.region, "s3", "aws4_request"):
            key = hmac.digest(key, word.encode(), "sha256")
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join((_ALGORITHM, stamp, self._scope(stamp), digest))
        return hmac.digest(key, text.encode(), "sha256").hex()


def encoded(query: Mapping[str, str]) -> str:
    """A query in the canonical form, which is also sent: sorted, everything but unreserved characters encoded."""
    return "&".join(f"{name}={value}" for name, value in sorted((_escape(k), _escape(v)) for k, v in query.items()))


def encoded_path(path: str) -> str:
    return quote(path, safe="/-_.~")


def _escape(text: str) -> str:
    return quote(text, safe="-_.~")


def _canonical(method: str, path: str, query: str, headers: Mapping[str, str], digest: str) -> str:
    lines = [f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers)]
    return "\n".join((method, path, query, "".join(lines), ";".join(sorted(headers)), digest))


def _stamp(now: int) -> str:
    return datetime.fromtimestamp(now // SECOND, UTC).strftime("%Y%m%dT%H%M%SZ")
