"""The actions that each route of resource servers checks: for a user's, then for an organization's."""

# Under /settings/resources and /organizations/{name}/settings/resources.
READS, WRITES = ("account.read_settings", "org.read_apps"), ("account.write_settings", "org.write_apps")
PAGES = {
    ("GET", ""): READS,
    ("GET", "/new"): WRITES,
    ("GET", "/{id}"): READS,
    ("GET", "/{id}/delete"): WRITES,
    ("GET", "/{id}/secret"): WRITES,
    ("POST", ""): WRITES,
    ("POST", "/{id}"): WRITES,
    ("POST", "/{id}/delete"): WRITES,
    ("POST", "/{id}/secret"): WRITES,
    ("POST", "/{id}/verify"): WRITES,
}
# The same under /api.
API_ROUTES = {
    ("DELETE", "/{id}"): WRITES,
    ("GET", ""): READS,
    ("GET", "/{id}"): READS,
    ("PATCH", "/{id}"): WRITES,
    ("POST", ""): WRITES,
    ("POST", "/{id}/secret"): WRITES,
    ("POST", "/{id}/verify"): WRITES,
}


def rows() -> dict[str, str]:
    found = {}
    for prefix, table in (("", PAGES), ("/api", API_ROUTES)):
        for (method, path), (of_user, of_organization) in table.items():
            found[f"{method} {prefix}/settings/resources{path}"] = of_user
            found[f"{method} {prefix}/organizations/{{name}}/settings/resources{path}"] = of_organization
    return found
