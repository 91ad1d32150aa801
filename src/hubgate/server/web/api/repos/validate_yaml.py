"""`POST /api/validate-yaml`: checks a README's front matter before it is committed."""

from typing import Any

import msgspec

from hubgate.server.edge.routes import MIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.git.threads import in_text_thread
from hubgate.server.hub.repos.card import BadFrontMatter, parse_front_matter, split_readme
from hubgate.server.jobs.caller import mark_read_only

# License identifiers in the model cards of existing hubs.
LICENSES = frozenset(
    """
    afl-3.0 agpl-3.0 apache-2.0 apple-amlr apple-ascl artistic-2.0 bigcode-openrail-m bigscience-bloom-rail-1.0
    bigscience-openrail-m bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear bsl-1.0 c-uda cc cc-by-2.0 cc-by-2.5
    cc-by-3.0 cc-by-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0
    cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc0-1.0 cdla-permissive-1.0
    cdla-permissive-2.0 cdla-sharing-1.0 creativeml-openrail-m deepfloyd-if-license ecl-2.0 epl-1.0 epl-2.0
    etalab-2.0 eupl-1.1 eupl-1.2 fair-noncommercial-research-license gemma gfdl gpl gpl-2.0 gpl-3.0 grok2-community
    h-research intel-research isc lgpl lgpl-2.1 lgpl-3.0 lgpl-lr llama2 llama3 llama3.1 llama3.2 llama3.3 llama4
    lppl-1.3c mit mpl-2.0 ms-pl ncsa odbl odc-by ofl-1.1 openmdw-1.0 openrail openrail++ osl-3.0 other pddl
    postgresql unknown unlicense wtfpl zlib
    """.split()  # noqa: SIM905 -- eighty quoted names would be harder to read
)


class ValidationRequest(msgspec.Struct, rename="camel"):
    content: str
    repo_type: str | None = None


class ValidationMessage(msgspec.Struct):
    message: str


class ValidationResult(msgspec.Struct):
    errors: list[ValidationMessage]
    warnings: list[ValidationMessage]


def routes() -> list[Route]:
    return [
        Route(
            "POST",
            "/api/validate-yaml",
            public(_validate),
            Surface.API,
            "Check the front matter of a README",
            body=ValidationRequest,
            body_cap=4 * MIB,
            answers={
                200: ("The front matter is valid.", ValidationResult),
                400: ("The front matter is invalid; errors has the reasons.", ValidationResult),
            },
        )
    ]


async def _validate(request: HubRequest) -> JsonResponse:
    body = await request.read_json(ValidationRequest)
    # The endpoint is public, and parsing YAML is slow.
    mark_read_only()
    result = await in_text_thread(_check_readme, body.content)
    return JsonResponse(result, 400 if result.errors else 200)


def _check_readme(readme: str) -> ValidationResult:
    front_matter, _ = split_readme(readme)
    if front_matter is None:
        return ValidationResult(
            [], [ValidationMessage("README.md has no metadata: begin it with a YAML block between two lines of ---.")]
        )
    try:
        errors = _errors(parse_front_matter(front_matter))
    except BadFrontMatter as error:
        errors = [str(error)]
    return ValidationResult([ValidationMessage(text) for text in errors], [])


def _errors(data: dict[str, Any]) -> list[str]:
    """Return problems that clients would fail on."""
    found = []
    if "model-index" in data and not isinstance(data["model-index"], list):
        found.append('"model-index" must be a list.')
    texts = {name: data.get(name) or "" for name in ("license", "pipeline_tag", "library_name")}
    found += [
        f'"{name}" must be a string or a list.' for name, value in texts.items() if not isinstance(value, (str, list))
    ]
    licenses = data.get("license") or []
    unknown = [
        name for name in map(str, licenses if isinstance(licenses, list) else [licenses]) if name not in LICENSES
    ]
    if unknown and not found:
        what_to_do = 'Use "other", and set "license_name".'
        found.append(f'"license" is not a known identifier: {unknown[0][:100]}. {what_to_do}')
    if "tags" in data and data["tags"] is not None and not isinstance(data["tags"], list):
        found.append('"tags" must be a list.')
    return found
