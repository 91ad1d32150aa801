"""Access requests, and the questions that a repo's card asks requesters."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from hubgate.server.errors import BadRequest, Unprocessable
from hubgate.server.hub.repos.model import Repo

PENDING, ACCEPTED, REJECTED = STATUSES = ("pending", "accepted", "rejected")
LONGEST_REASON = 200
MAX_ANSWERS = 20
LONGEST_QUESTION = 100
LONGEST_ANSWER = 1_000
MAX_OPTIONS = 100


class AccessRequest(msgspec.Struct, frozen=True):
    """An access request with its user. The order of the fields is that of `store.REQUEST`."""

    id: str
    repo_id: str
    user_id: str
    user_name: str
    user_fullname: str
    # Empty if it is not verified.
    user_email: str
    status: str
    # Whether the user asked. If a writer granted access, the user did not consent to show the e-mail address.
    asked: int
    # JSON: the answers by question.
    answers: str
    reason: str
    created_at: int
    reviewed_at: int | None
    reviewer_id: str | None
    reviewer_name: str | None

    @property
    def email(self) -> str | None:
        """The verified address, if the user shared it by asking."""
        return self.user_email or None if self.asked else None

    @property
    def answer_map(self) -> dict[str, str]:
        return msgspec.json.decode(self.answers, type=dict[str, str])


class Question(msgspec.Struct, frozen=True):
    """A question of the repo's card. `kind` is text, checkbox, date or select."""

    name: str
    kind: str
    options: tuple[str, ...] = ()


class GateForm(msgspec.Struct, frozen=True):
    """The text and the questions that users see before they ask for access."""

    prompt: str = ""
    questions: tuple[Question, ...] = ()

    @property
    def digest(self) -> str:
        """Identifies the text and the questions, so that a page can tell which form its answers belong to."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


_KINDS = {"checkbox": "checkbox", "date_picker": "date", "date": "date"}


def gate_form(repo: Repo) -> GateForm:
    """The form that the fields `extra_gated_*` of the repo's card define. Invalid parts are ignored."""
    card = msgspec.json.decode(repo.card)
    card = card if isinstance(card, dict) else {}
    prompt, fields = card.get("extra_gated_prompt"), card.get("extra_gated_fields")
    pairs = list(fields.items())[:MAX_ANSWERS] if isinstance(fields, dict) else []
    questions = tuple(_question(str(name)[:LONGEST_QUESTION], definition) for name, definition in pairs)
    return GateForm(prompt if isinstance(prompt, str) else "", questions)


def _question(name: str, definition: Any) -> Question:
    kind = definition.get("type") if isinstance(definition, dict) else definition
    options = definition.get("options") if isinstance(definition, dict) else None
    if kind == "select" and isinstance(options, list) and options:
        texts = [each.get("value", each.get("label", "")) if isinstance(each, dict) else each for each in options]
        return Question(name, "select", tuple(str(text)[:LONGEST_ANSWER] for text in texts[:MAX_OPTIONS]))
    return Question(name, _KINDS.get(kind, "text") if isinstance(kind, str) else "text")


def check_answers(answers: Mapping[str, str]) -> str:
    """Return the answers as JSON; raise Unprocessable if there are too many or one is too long."""
    if len(answers) > MAX_ANSWERS:
        raise Unprocessable(f"At most {MAX_ANSWERS} answers are accepted.")
    for name, text in answers.items():
        if len(name) > LONGEST_QUESTION or len(text) > LONGEST_ANSWER:
            raise Unprocessable(
                f"Questions may have at most {LONGEST_QUESTION} characters, answers at most {LONGEST_ANSWER:,}."
            )
    return msgspec.json.encode(dict(answers)).decode()


def require_answers(form: GateForm, answers: Mapping[str, str]) -> None:
    """Raise Unprocessable unless every question has an answer: one may be the consent to a license."""
    if any(not answers.get(question.name, "").strip() for question in form.questions):
        raise Unprocessable("Answer all questions in the repo's card.")


def check_reason(reason: str) -> str:
    text = " ".join(reason.split())
    if len(text) > LONGEST_REASON:
        raise Unprocessable(f"A reason may have at most {LONGEST_REASON} characters.")
    return text


class OwnAccess(BadRequest):
    """A writer of the repo grants themselves access, which would outlive their role."""

    def __init__(self) -> None:
        super().__init__(
            "You cannot grant yourself access: as long as you may write to this repo, you can read its files. "
            "Another user who may write to it can grant you access."
        )


class RepoNotGated(BadRequest):
    """The repo is not gated, so users need no access request."""

    code = "RepoNotGated"

    def __init__(self, repo: Repo) -> None:
        super().__init__(f"The {repo.label} is not gated: everyone who can see it can read its files.")
