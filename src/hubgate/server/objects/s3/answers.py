"""Answers of the store in XML. The store belongs to the operator, but a proxy may answer in its place."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from msgspec import Struct

from hubgate.server.clock import SECOND
from hubgate.server.objects.model import StoreProblem, StoreUnavailable

# Answers have no document type. Expat would expand its entities.
_DOCUMENT_TYPE = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)


class Error(Struct, frozen=True):
    code: str
    message: str


class ListedObject(Struct, frozen=True):
    name: str
    size: int


class Page(Struct, frozen=True):
    objects: Sequence[ListedObject]
    next_token: str


class UnfinishedUpload(Struct, frozen=True):
    name: str
    upload_id: str
    started_at: int


def error_of(body: bytes) -> Error:
    """The error in a body; empty if there is none that can be read."""
    try:
        root = _parse(body)
    except StoreUnavailable:
        return Error("", "")
    return Error(_text(root, "Code"), _text(root, "Message")) if _name(root) == "Error" else Error("", "")


def page_of(body: bytes) -> Page:
    root = _expect(body, "ListBucketResult")
    found = [
        ListedObject(unquote(_text(item, "Key")), int(_text(item, "Size") or 0)) for item in _children(root, "Contents")
    ]
    token = _text(root, "NextContinuationToken") if _text(root, "IsTruncated") == "true" else ""
    return Page(found, token)


def upload_id_of(body: bytes) -> str:
    upload_id = _text(_expect(body, "InitiateMultipartUploadResult"), "UploadId")
    if not upload_id:
        raise StoreUnavailable from StoreProblem("the store started an upload without an id")
    return upload_id


def unfinished_uploads(body: bytes) -> list[UnfinishedUpload]:
    return [
        UnfinishedUpload(unquote(_text(item, "Key")), _text(item, "UploadId"), _time(_text(item, "Initiated")))
        for item in _children(_expect(body, "ListMultipartUploadsResult"), "Upload")
    ]


def completion(etags: Sequence[str]) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()


def _parse(body: bytes) -> ElementTree.Element:
    if _DOCUMENT_TYPE.search(body):
        raise StoreUnavailable from StoreProblem("the store answered with a document type")
    try:
        return ElementTree.fromstring(body)  # noqa: S314 - without a document type, nothing is expanded
    except ElementTree.ParseError as error:
        raise StoreUnavailable from StoreProblem(f"the store did not answer in XML: {error}")


def _expect(body: bytes, name: str) -> ElementTree.Element:
    root = _parse(body)
    if _name(root) != name:
        raise StoreUnavailable from StoreProblem(f"the store answered {_name(root)[:100]} instead of {name}")
    return root


def _name(element: ElementTree.Element) -> str:
    """The name without the namespace, which stores write differently."""
    return element.tag.rpartition("}")[2]


def _children(element: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    return (child for child in element if _name(child) == name)


def _text(element: ElementTree.Element, name: str) -> str:
    return next((child.text or "" for child in _children(element, name)), "")


def _time(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * SECOND)
