"""The addresses of Spaces that this hub runs: `{base_url}/hosted/{owner}/{name}/`. The hub never dials them."""

from typing import NamedTuple

PREFIX = "/hosted/"


class HostedLink(NamedTuple):
    """The parsed URL of a webhook whose receiver is a Space. `path` is the app's, with its query."""

    owner: str
    name: str
    path: str

    @property
    def receiver(self) -> str:
        """The receiver, for the limit of requests in flight."""
        return f"{self.owner}/{self.name}".lower()


def hosted_url(base_url: str, full_name: str) -> str:
    return f"{base_url}{PREFIX}{full_name}"


def parse_hosted(path_and_query: str) -> HostedLink | None:
    """The parts of a path at this hub; None if it does not lead to a Space."""
    if not path_and_query.startswith(PREFIX):
        return None
    owner, _, rest = path_and_query.removeprefix(PREFIX).partition("/")
    name, slash, path = rest.partition("/")
    return HostedLink(owner, name, slash + path)
