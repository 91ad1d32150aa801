"""Signatures for S3, with the examples of the AWS documentation, and the addresses of buckets."""

import pytest

from hubgate.server.clock import SECOND
from hubgate.server.errors import StartupError
from hubgate.server.objects import location
from hubgate.server.objects.s3.signatures import EMPTY_DIGEST, Address, Credentials, Signer, encoded

# 2013-05-24T00:00:00Z
NOW = 1_369_353_600 * SECOND
SIGNER = Signer(Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), "us-east-1")
HOST = "examplebucket.s3.amazonaws.com"


def signature(headers: dict[str, str]) -> str:
    return headers["authorization"].rpartition("=")[2]


def test_request_with_a_range() -> None:
    signed = SIGNER.headers("GET", Address("https", HOST, "/test.txt"), {}, {"range": "bytes=0-9"}, EMPTY_DIGEST, NOW)
    assert signature(signed) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date," in signed["authorization"]


def test_request_with_a_query() -> None:
    query = {"prefix": "J", "max-keys": "2"}
    signed = SIGNER.headers("GET", Address("https", HOST, "/"), query, {}, EMPTY_DIGEST, NOW)
    assert signature(signed) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"


def test_link() -> None:
    link = SIGNER.link("GET", Address("https", HOST, "/test.txt"), {}, 86400, NOW)
    assert link.startswith(f"https://{HOST}/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&")
    assert link.endswith("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


def test_query_is_encoded_completely() -> None:
    assert encoded({"b": "a b/+~", "a": "ü=&"}) == "a=%C3%BC%3D%26&b=a%20b%2F%2B~"


def test_secret_is_not_shown() -> None:
    assert "K7MDENG" not in repr(SIGNER)


def test_session_token_is_signed() -> None:
    signer = Signer(Credentials("key", "secret", "session"), "us-east-1")
    signed = signer.headers("GET", Address("https", HOST, "/"), {}, {}, EMPTY_DIGEST, NOW)
    assert signed["x-amz-security-token"] == "session"
    assert "x-amz-security-token" in signed["authorization"]
    assert "X-Amz-Security-Token=session" in signer.link("GET", Address("https", HOST, "/"), {}, 60, NOW)


@pytest.mark.parametrize(
    ("url", "variables", "expected"),
    [
        ("s3://b-1/p", {}, "https://b-1.s3.us-east-1.amazonaws.com/p/lfs/x"),
        ("s3://b-1", {"AWS_REGION": "eu-west-1"}, "https://b-1.s3.eu-west-1.amazonaws.com/lfs/x"),
        ("s3://b.1/p/q", {"AWS_DEFAULT_REGION": "eu-west-1"}, "https://s3.eu-west-1.amazonaws.com/b.1/p/q/lfs/x"),
        ("s3://b-1/p", {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000/"}, "http://127.0.0.1:9000/b-1/p/lfs/x"),
        ("s3://b-1", {"AWS_ENDPOINT_URL_S3": "http://a/s3", "AWS_ENDPOINT_URL": "http://b"}, "http://a/s3/b-1/lfs/x"),
    ],
)
def test_address_of_an_object(url: str, variables: dict[str, str], expected: str) -> None:
    assert location.s3_location(location.parse_url(url), variables).address("lfs/x").url() == expected


@pytest.mark.parametrize(
    "value", ["s3://", "s3://B", "s3://abc/../b", "s3://abc/b c", "https://a/b", "s3://u:p@bucket", "a"]
)
def test_malformed_address_of_a_store_is_rejected(value: str) -> None:
    with pytest.raises(ValueError):
        location.parse_url(value)


@pytest.mark.parametrize(
    ("value", "url", "former"), [("", "", ""), ("folder", "", "folder"), ("s3://abc/", *["s3://abc"] * 2)]
)
def test_address_of_a_store_is_parsed(value: str, url: str, former: str) -> None:
    assert (location.parse_url(value), location.parse_former_url(value)) == (url, former)


@pytest.mark.parametrize("variables", [{}, {"AWS_ACCESS_KEY_ID": "key"}, {"AWS_SECRET_ACCESS_KEY": "secret"}])
def test_missing_credentials_are_named(variables: dict[str, str]) -> None:
    with pytest.raises(StartupError, match="AWS_ACCESS_KEY_ID"):
        location.credentials(variables)
