"""The SQL condition that a caller may see a repo `repos r`, which may be missing because it was deleted."""

from collections.abc import Sequence

from hubgate.server.access.visibility import VisibleRepos

Values = dict[str, str | int]


class SeesRepo:
    """Builds conditions for one caller, and adds their parameters to `values`."""

    def __init__(self, visible: VisibleRepos, values: Values) -> None:
        values["seeing_client"] = visible.client_id or ""
        self._seen = _among(visible.owners, "seen", values)
        self._created = _among(visible.owners_of_created, "created", values)
        self._chosen = _among(visible.repos, "chosen", values)
        self._reached = _among(visible.owners_of_repos, "reached", values)

    def __call__(self, private: str, owner: str) -> str:
        """`private` and `owner` are SQL expressions for the state of the repo at the time in question."""
        return f"""
            ({private} = 0 OR {owner} {self._seen}
                OR ({owner} {self._created} AND r.creator_client = :seeing_client)
                OR ({owner} {self._reached} AND r.id {self._chosen}))
        """


def _among(ids: Sequence[str], name: str, values: Values) -> str:
    named = {f"{name}{number}": each for number, each in enumerate(ids)}
    values.update(named)
    return f"IN ({', '.join(f':{each}' for each in named) or 'NULL'})"
