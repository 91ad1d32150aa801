"""`POST /api/validate-yaml`: what is wrong with a README's front matter, asked before it is committed."""

from typing import Any

import msgspec

from hubgate.server.edge.routes import MIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.git.threads import in_text_thread
from hubgate.server.hub.repos.card import BadFrontMatter, parsed, split_readme
from hubgate.server.jobs.caller import only_reads


class ReadmeToCheck(msgspec.Struct, rename="camel"):
    content: str
    repo_type: str | None = None


class Remark(msgspec.Struct):
    message: str


class Verdict(msgspec.Struct):
    errors: list[Remark]
    warnings: list[Remark]


def routes() -> list[Route]:
    return [
        Route(
            "POST",
            "/api/validate-yaml",
            public(_validate),
            Surface.API,
            "Check the front matter of a README",
            body=ReadmeToCheck,
            body_cap=4 * MIB,
            answers={200: ("It can be committed.", Verdict), 400: ("It cannot; errors says why.", Verdict)},
        )
    ]


async def _validate(request: HubRequest) -> JsonResponse:
    asked = await request.read_json(ReadmeToCheck)
    # Anyone may ask, and reading YAML takes its time.
    only_reads()
    verdict = await in_text_thread(_verdict, asked.content)
    return JsonResponse(verdict, 400 if verdict.errors else 200)


def _verdict(readme: str) -> Verdict:
    front_matter, _ = split_readme(readme)
    if front_matter is None:
        return Verdict([], [Remark("There is no metadata: begin README.md with a block between ---.")])
    try:
        errors = _errors(parsed(front_matter))
    except BadFrontMatter as error:
        errors = [str(error)]
    return Verdict([Remark(text) for text in errors], [])


def _errors(data: dict[str, Any]) -> list[str]:
    """What clients would stumble over."""
    found = []
    if "model-index" in data and not isinstance(data["model-index"], list):
        found.append('"model-index" must be a list.')
    words = ("license", "pipeline_tag", "library_name")
    found += [f'"{name}" must be a text.' for name in words if not isinstance(data.get(name, ""), (str, list))]
    if "tags" in data and data["tags"] is not None and not isinstance(data["tags"], list):
        found.append('"tags" must be a list.')
    return found
