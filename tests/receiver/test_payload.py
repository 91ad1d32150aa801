"""Payloads: wire names and snake_case, unknown members preserved, wrong types rejected."""

import copy
import json
import pickle
from typing import Any

import pytest
from tests.protocol.golden import FOLDER

from hubgate.receiver import PayloadError, WebhookPayload
from hubgate.receiver.payload import MAX_LEVELS, parse_json, payload_from
from hubgate.receiver.testing import KINDS, sample
from hubgate.server.events.kinds import Kind


def test_members_are_accessible_by_wire_name_and_snake_case() -> None:
    payload = WebhookPayload(sample("repo.content.update"))
    assert payload.repo.head_sha == payload.repo.headSha == "a" * 40
    assert payload.updated_refs is not None
    assert payload.updatedRefs[0].newSha == payload.updated_refs[0].new_sha == "a" * 40
    assert payload.kind == "repo.content.update"
    payload = WebhookPayload(sample("discussion.create"))
    assert payload.discussion is not None
    assert payload.discussion.is_pull_request is payload.discussion.isPullRequest is False


def test_head_sha_is_read_in_both_spellings() -> None:
    for name in ("headSha", "head_sha"):
        payload = WebhookPayload(
            {"event": {"action": "a", "scope": "repo"}, "repo": {"type": "m", "name": "n", name: "x"}}
        )
        assert payload.repo.head_sha == payload.repo.headSha == "x"


def test_unknown_members_are_preserved() -> None:
    raw = sample("repo.create", newThing={"deepThing": [{"x": 1}], "plain": 5})
    raw["event"] = {"action": "celebrate", "scope": "repo.birthday", "why": "because"}
    payload = WebhookPayload(raw)
    assert (payload.event.action, payload.event.scope, payload.event.why) == ("celebrate", "repo.birthday", "because")
    assert payload.newThing.deep_thing[0].x == payload.new_thing.deepThing[0].x == 1
    assert payload["newThing"]["plain"] == 5
    assert payload.to_dict() == raw
    assert json.loads(payload.model_dump_json()) == raw


def test_missing_members_are_null_or_attribute_errors() -> None:
    payload = WebhookPayload(sample("repo.create"))
    assert payload.discussion is payload.comment is payload.movedTo is payload.repo.subdomain is None
    with pytest.raises(AttributeError, match="no 'unheard_of'"):
        _ = payload.unheard_of
    with pytest.raises(AttributeError, match="changed"):
        payload.repo = None  # type: ignore[assignment]


def test_payload_can_be_copied_pickled_and_compared() -> None:
    payload = WebhookPayload(sample("repo.create"))
    assert payload == copy.deepcopy(payload) == pickle.loads(pickle.dumps(payload))
    assert payload != WebhookPayload(sample("repo.delete"))
    assert "ada/tiny" in repr(payload)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"event": None}, "payload.event is missing"),
        ({"event": []}, "payload.event is not an object"),
        ({"event": {"action": 5, "scope": "repo"}}, "payload.event.action is not of type str"),
        ({"event": {"action": "create"}}, "payload.event.scope is missing"),
        ({"repo": {"type": "model"}}, "payload.repo.name is missing"),
        ({"updatedRefs": {}}, "payload.updatedRefs is not a list"),
        ({"updatedRefs": [{"ref": "r"}, 5]}, r"payload.updatedRefs\[1\] is not an object"),
        ({"webhook": {"id": "x", "version": True}}, "payload.webhook.version is not of type int"),
    ],
)
def test_wrong_type_is_rejected_with_its_path(change: dict[str, Any], where: str) -> None:
    with pytest.raises(PayloadError, match=where):
        WebhookPayload({**sample("repo.create"), **change})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"NaN",
        b'{"a": Infinity}',
        b"[" * 100_000,
        b"1" * 10_000,
        b'"\\ud800',
        b"{}x",
        b"1e999",
        b"-1e999",
    ],
)
def test_body_that_is_not_json_is_rejected(body: bytes) -> None:
    with pytest.raises(PayloadError, match="not JSON"):
        parse_json(body)


def test_deep_nesting_is_rejected() -> None:
    for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
        assert parse_json(opened * MAX_LEVELS + b"1" * (opened != b"[") + closed * MAX_LEVELS)
        with pytest.raises(PayloadError, match="nested deeper than 100"):
            parse_json(opened * MAX_LEVELS + b"[1]" + closed * MAX_LEVELS)


@pytest.mark.parametrize("body", [b"[]", b"5", b"null", b'"text"'])
def test_json_that_is_not_an_object_is_rejected(body: bytes) -> None:
    with pytest.raises(PayloadError, match="not an object"):
        payload_from(parse_json(body))


def test_every_payload_of_the_contract_is_read() -> None:
    for file in FOLDER.glob("*.json"):
        payload = payload_from(json.loads(file.read_text()))
        assert file.name.startswith(payload.kind)


def test_every_kind_of_event_has_a_sample() -> None:
    assert {f"{kind.scope}.{kind.action}" for kind in Kind} <= set(KINDS)
    for kind in KINDS:
        assert WebhookPayload(sample(kind, type="dataset")).kind == kind


@pytest.mark.parametrize("kind", [f"{kind.scope}.{kind.action}" for kind in Kind])
def test_samples_match_the_payloads_of_the_hub(kind: str) -> None:
    agreed = [file for file in FOLDER.glob(f"{kind}*.json") if "space" not in file.name]
    assert agreed
    made = sample(kind)
    assert made.pop("webhook")["version"] == 3
    assert any(shape(json.loads(file.read_text())) == shape(made) for file in agreed), kind


def test_sample_discussions_match_the_wire_format() -> None:
    made = sample("discussion.comment.create")
    assert "headSha" not in made["repo"]
    assert set(made["comment"]) == {"id", "author", "content", "hidden", "url"}
    assert made["comment"]["url"]["web"].startswith(made["discussion"]["url"]["web"] + "#")


def test_unknown_sample_kind_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"repo\.create"):
        sample("repo.explode")


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__
