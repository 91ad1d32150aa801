"""The subjects of the API reference. The path of an operation decides which subject it belongs to.

To document a route of a new kind, add its path to a subject below: a test fails for a route without a subject.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from hubgate.server.web.pages.api_reference.examples import Document
from hubgate.server.web.pages.api_reference.operations import Operation, Shape, operation
from hubgate.server.web.pages.docs.searching import Entry, entry

_SETTINGS = "/api/(organizations/{name}/)?settings"
_REPO = "/api/(models|datasets|spaces)/{namespace}/{repo}"
_REPO_PAGE = r"(/datasets|/spaces)?/{namespace}/{repo}(\.git)?"

# Operations on datasets and spaces that also exist for models are listed once.
_OF_MODELS = "/api/models"
_OF_OTHER_TYPES = re.compile(r"/api/(?:datasets|spaces)(?=/|$)")
_FOR_EVERY_TYPE = "The operations on models exist under /api/datasets and /api/spaces too."


class ApiSubject(Struct, frozen=True):
    """A subject, with the beginnings of its paths as regular expressions that end at the end of a word."""

    slug: str
    title: str
    paths: tuple[str, ...]
    note: str = ""
    operations: list[Operation] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"/docs/api/{self.slug}"

    @property
    def needs_token(self) -> bool:
        return any(operation.needs_token for operation in self.operations)

    def includes(self, path: str) -> bool:
        return re.match(rf"({'|'.join(self.paths)})(?![\w-])", path) is not None


SUBJECTS = (
    ApiSubject(
        "repos",
        "Repos and search",
        (
            "/api/repos",
            "/api/(models|datasets|spaces)(/{repo}|/{namespace}/{repo})?$",
            f"{_REPO}/(revision|settings|auth-check|events)",
            f"{_SETTINGS}/(repositories|redirects)",
            "/api/(validate-yaml|quicksearch)",
        ),
        _FOR_EVERY_TYPE,
    ),
    ApiSubject(
        "files",
        "Files and commits",
        (
            f"{_REPO}/(tree|paths-info|preupload|commits?|compare|refs|branch|tag|super-squash)",
            f"{_REPO_PAGE}/(resolve|raw)",
        ),
        _FOR_EVERY_TYPE,
    ),
    ApiSubject("git", "Git and Git LFS", (f"{_REPO_PAGE}/(info|git-upload-pack|git-receive-pack)", "/lfs")),
    ApiSubject("xet", "Large files as chunks", (f"{_REPO}/xet-(read|write)-token", "/xet"), _FOR_EVERY_TYPE),
    ApiSubject("discussions", "Discussions and pull requests", (f"{_REPO}/discussions",), _FOR_EVERY_TYPE),
    ApiSubject(
        "gated-repos",
        "Access to gated repos",
        (f"{_REPO}/(ask-access|user-access-request)", f"{_REPO_PAGE}/user-access-report"),
        _FOR_EVERY_TYPE,
    ),
    ApiSubject("collections", "Collections", ("/api/collections",)),
    ApiSubject(
        "spaces",
        "Apps of Spaces",
        (
            "/api/spaces/hardware",
            "/api/spaces/{namespace}/{repo}/(runtime|restart|pause|sleeptime|hardware|secrets|variables|logs)",
        ),
    ),
    ApiSubject("jobs", "Inference and jobs", ("/v1", "/api/(scheduled-)?jobs")),
    ApiSubject(
        "accounts",
        "Users and organizations",
        ("/api/(whoami-v2|users)", "/api/organizations/{name}/(overview|members|audit-log)", "/avatars"),
    ),
    ApiSubject(
        "tokens",
        "Tokens and sessions",
        ("/api/settings/(tokens|sessions|exchanged-tokens)", "/api/credentials"),
    ),
    ApiSubject("sign-in", "Sign-in for apps", ("/oauth", r"/\.well-known", "/static/buttons")),
    ApiSubject("apps", "Apps", (f"{_SETTINGS}/applications", "/api/settings/connected-apps")),
    ApiSubject("resource-servers", "Resource servers", (f"{_SETTINGS}/resources",)),
    ApiSubject("webhooks", "Webhooks and events", (f"{_SETTINGS}/webhooks", "/api/(tunnels|event-schemas)")),
    ApiSubject(
        "hub",
        "Health and compatibility",
        ("/healthz", "/readyz", r"/api/openapi\.json", "/api/(agent-harnesses|telemetry)"),
    ),
)
# An operation that was forgotten above is still shown.
_OTHER = ApiSubject("other", "Other", ())


def subjects(document: Document) -> list[ApiSubject]:
    """The subjects that have operations, each with its operations in the order of the document."""
    found = [ApiSubject(one.slug, one.title, one.paths, one.note) for one in (*SUBJECTS, _OTHER)]
    for path, methods in document["paths"].items():
        if not is_listed_with_models(path, document):
            subject = next((subject for subject in found if subject.includes(path)), found[-1])
            subject.operations.extend(
                operation(method, path, described, document) for method, described in methods.items()
            )
    return [subject for subject in found if subject.operations]


def is_listed_with_models(path: str, document: Document) -> bool:
    of_models = _OF_OTHER_TYPES.sub(_OF_MODELS, path, 1)
    paths = document["paths"]
    return of_models != path and of_models in paths and paths[of_models].keys() >= paths[path].keys()


def search_entries(subject: ApiSubject, shapes: Sequence[Shape]) -> Iterator[Entry]:
    """The operations of a subject and its shapes, for the search of the documentation."""
    for each in subject.operations:
        parameters = ", ".join(parameter.name for parameter in each.parameters)
        text = f"{each.summary}." + (f" Parameters: {parameters}." if parameters else "")
        address = f"{subject.address}#{each.anchor}"
        yield entry(address, f"API, {subject.title}", f"{each.method} {each.path}", text)
    for shape in shapes:
        fields = ", ".join(field.name for field in shape.fields)
        yield entry(f"{subject.address}#{shape.anchor}", "API, schema", shape.name, f"Fields: {fields}.")
