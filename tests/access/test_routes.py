"""Every route of the hub has its row here: which question guards it. A route without one fails."""

from pathlib import Path

import pytest
from tests.bed.blocking import blocking
from tests.bed.engines import SqliteEngine, settings_for

from hubgate.server.access.actions import Action
from hubgate.server.app import build_app, open_hub
from hubgate.server.http.routes import Route

ACTIONS = {action.rule.name for action in Action}

GUARDED_BY = {
    "DELETE /api/organizations/{name}/members/{user}": "org.write_members",
    "DELETE /api/organizations/{name}/settings/applications/{client_id}": "org.write_apps",
    "DELETE /api/organizations/{name}/settings/applications/{client_id}/secret": "org.write_apps",
    "DELETE /api/organizations/{name}/settings/applications/{client_id}/tokens": "org.write_apps",
    "DELETE /api/organizations/{name}/settings/applications/{client_id}/tokens/{id}": "org.write_apps",
    "DELETE /api/repos/delete": "repo.manage",
    "DELETE /api/settings/applications/{client_id}": "account.write_settings",
    "DELETE /api/settings/applications/{client_id}/secret": "account.write_settings",
    "DELETE /api/settings/connected-apps/{client_id}": "account.write_settings",
    "DELETE /api/settings/sessions/{id}": "account.write_settings",
    "DELETE /api/settings/tokens/{id}": "account.write_settings",
    "GET /": "hub.public",
    "GET /.well-known/oauth-authorization-server": "hub.public",
    "GET /.well-known/oauth-protected-resource": "hub.public",
    "GET /.well-known/openid-configuration": "hub.public",
    "GET /api/agent-harnesses": "hub.public",
    "GET /api/datasets": "repo.see",
    "GET /api/datasets/{repo}": "hub.public",
    "GET /api/models": "repo.see",
    "GET /api/models/{repo}": "hub.public",
    "GET /api/openapi.json": "hub.public",
    "GET /api/organizations/{name}/audit-log": "org.read_audit_log",
    "GET /api/organizations/{name}/audit-log/batches": "org.read_audit_log",
    "GET /api/organizations/{name}/audit-log/export": "org.read_audit_log",
    "GET /api/organizations/{name}/members": "org.read_members",
    "GET /api/organizations/{name}/overview": "hub.public",
    "GET /api/organizations/{name}/settings/applications": "org.read_apps",
    "GET /api/organizations/{name}/settings/applications/{client_id}": "org.read_apps",
    "GET /api/organizations/{name}/settings/applications/{client_id}/tokens": "org.read_apps",
    "GET /api/settings/applications": "account.read_settings",
    "GET /api/settings/applications/{client_id}": "account.read_settings",
    "GET /api/settings/connected-apps": "account.read_settings",
    "GET /api/settings/connected-apps/{client_id}": "account.read_settings",
    "GET /api/settings/exchanged-tokens": "account.read_settings",
    "GET /api/settings/sessions": "account.read_settings",
    "GET /api/settings/tokens": "account.read_settings",
    "GET /api/settings/tokens/{id}": "account.read_settings",
    "GET /api/spaces": "repo.see",
    "GET /api/spaces/{repo}": "hub.public",
    "GET /api/users/{name}/overview": "hub.public",
    "GET /api/whoami-v2": "account.identify",
    "GET /avatars/{id}.svg": "hub.public",
    "GET /change-email/{secret}": "hub.public",
    "GET /docs": "hub.public",
    "GET /docs/api": "hub.public",
    "GET /docs/cimd": "hub.public",
    "GET /docs/sign-in": "hub.public",
    "GET /healthz": "hub.public",
    "GET /invitations/{secret}": "hub.public",
    "GET /join": "hub.public",
    "GET /lfs/download/{repo_id}/{oid}": "hub.public",
    "GET /login": "hub.public",
    "GET /metrics": "hub.public",
    "GET /oauth/authorize": "hub.public",
    "GET /oauth/device": "hub.public",
    "GET /oauth/device/done": "hub.public",
    "GET /oauth/explain/{id}": "hub.public",
    "GET /oauth/jwks": "hub.public",
    "GET /oauth/userinfo": "account.identify",
    "GET /operator": "operator.use",
    "GET /operator/organizations": "operator.use",
    "GET /operator/requests": "operator.use",
    "GET /operator/users": "operator.use",
    "GET /organizations/new": "account.write_settings",
    "GET /organizations/{name}/members": "org.read_members",
    "GET /organizations/{name}/settings": "org.read_settings",
    "GET /organizations/{name}/settings/applications": "org.read_apps",
    "GET /organizations/{name}/settings/applications/new": "org.write_apps",
    "GET /organizations/{name}/settings/applications/{client_id}": "org.read_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/ask/scope": "org.write_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/ask/token-exchange": "org.write_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/delete": "org.write_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/exchange": "org.read_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/exchange/members/{user}": "org.read_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/exchange/revoke": "org.write_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/secret": "org.write_apps",
    "GET /organizations/{name}/settings/applications/{client_id}/secret/delete": "org.write_apps",
    "GET /organizations/{name}/settings/audit-log": "org.read_audit_log",
    "GET /organizations/{name}/settings/audit-log/export": "org.read_audit_log",
    "GET /organizations/{name}/settings/delete": "org.write_settings",
    "GET /organizations/{name}/settings/members": "org.read_settings",
    "GET /organizations/{name}/settings/members/{user}/remove": "org.write_members",
    "GET /organizations/{name}/settings/profile": "org.read_settings",
    "GET /readyz": "hub.public",
    "GET /reset": "hub.public",
    "GET /reset/{secret}": "hub.public",
    "GET /settings": "account.read_settings",
    "GET /settings/applications": "account.read_settings",
    "GET /settings/applications/new": "account.write_settings",
    "GET /settings/applications/{client_id}": "account.read_settings",
    "GET /settings/applications/{client_id}/ask/scope": "account.write_settings",
    "GET /settings/applications/{client_id}/delete": "account.write_settings",
    "GET /settings/applications/{client_id}/secret": "account.write_settings",
    "GET /settings/applications/{client_id}/secret/delete": "account.write_settings",
    "GET /settings/connected": "account.read_settings",
    "GET /settings/connected/{client_id}": "account.read_settings",
    "GET /settings/connected/{client_id}/revoke": "account.write_settings",
    "GET /settings/delete": "account.credentials",
    "GET /settings/export": "account.read_settings",
    "GET /settings/organizations": "account.read_settings",
    "GET /settings/organizations/{name}/leave": "account.write_settings",
    "GET /settings/password": "account.credentials",
    "GET /settings/profile": "account.read_settings",
    "GET /settings/sessions": "account.read_settings",
    "GET /settings/tokens": "account.read_settings",
    "GET /settings/tokens/{id}": "account.read_settings",
    "GET /settings/tokens/{id}/refresh": "account.credentials",
    "GET /settings/tokens/{id}/revoke": "account.write_settings",
    "GET /setup/{secret}": "hub.public",
    "GET /static/buttons/{name}": "hub.public",
    "GET /static/{digest}/{name}": "hub.public",
    "GET /verify/{secret}": "hub.public",
    "GET /{name}": "hub.public",
    "HEAD /api/telemetry/{topic:path}": "hub.public",
    "PATCH /api/organizations/{name}/settings/applications/{client_id}": "org.write_apps",
    "PATCH /api/settings/applications/{client_id}": "account.write_settings",
    "PATCH /api/settings/connected-apps/{client_id}": "account.write_settings",
    "PATCH /api/settings/tokens/{id}": "account.write_settings",
    "POST /api/credentials/revoke": "hub.public",
    "POST /api/organizations/{name}/settings/applications": "org.write_apps",
    "POST /api/organizations/{name}/settings/applications/{client_id}/exchange/dry-run": "org.write_apps",
    "POST /api/organizations/{name}/settings/applications/{client_id}/secret": "org.write_apps",
    "POST /api/repos/create": "repo.create",
    "POST /api/repos/move": "repo.manage",
    "POST /api/settings/applications": "account.write_settings",
    "POST /api/settings/applications/{client_id}/secret": "account.write_settings",
    "POST /api/settings/tokens": "account.credentials",
    "POST /api/settings/tokens/{id}/refresh": "account.credentials",
    "POST /api/validate-yaml": "hub.public",
    "POST /change-email/{secret}": "hub.public",
    "POST /docs/cimd": "account.read_settings",
    "POST /invitations/{secret}": "account.write_settings",
    "POST /join": "hub.public",
    "POST /lfs/complete/{repo_id}/{oid}": "hub.public",
    "POST /login": "hub.public",
    "POST /logout": "hub.public",
    "POST /oauth/authorize": "hub.public",
    "POST /oauth/device": "hub.public",
    "POST /oauth/device/verify": "hub.public",
    "POST /oauth/introspect": "hub.public",
    "POST /oauth/revoke": "hub.public",
    "POST /oauth/token": "hub.public",
    "POST /oauth/userinfo": "account.identify",
    "POST /operator/organizations/{name}": "operator.use",
    "POST /operator/requests/{id}/grant": "operator.use",
    "POST /operator/requests/{id}/refuse": "operator.use",
    "POST /operator/users/{user}/disable": "operator.use",
    "POST /operator/users/{user}/enable": "operator.use",
    "POST /operator/users/{user}/reset": "operator.use",
    "POST /operator/users/{user}/verify": "operator.use",
    "POST /organizations/new": "account.write_settings",
    "POST /organizations/{name}/settings/applications": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/ask/scope": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/ask/token-exchange": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/delete": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/exchange": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/exchange/dry-run": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/exchange/revoke": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/exchange/tokens/{id}/revoke": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/secret": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/secret/delete": "org.write_apps",
    "POST /organizations/{name}/settings/applications/{client_id}/secret/end": "org.write_apps",
    "POST /organizations/{name}/settings/billing": "org.write_settings",
    "POST /organizations/{name}/settings/delete": "org.write_settings",
    "POST /organizations/{name}/settings/invitations/{id}/withdraw": "org.write_members",
    "POST /organizations/{name}/settings/members": "org.write_members",
    "POST /organizations/{name}/settings/members/{user}/remove": "org.write_members",
    "POST /organizations/{name}/settings/members/{user}/role": "org.write_members",
    "POST /organizations/{name}/settings/profile": "org.write_settings",
    "POST /organizations/{name}/settings/rename": "org.write_settings",
    "POST /reset": "hub.public",
    "POST /reset/{secret}": "hub.public",
    "POST /settings/applications": "account.write_settings",
    "POST /settings/applications/{client_id}": "account.write_settings",
    "POST /settings/applications/{client_id}/ask/scope": "account.write_settings",
    "POST /settings/applications/{client_id}/delete": "account.write_settings",
    "POST /settings/applications/{client_id}/secret": "account.write_settings",
    "POST /settings/applications/{client_id}/secret/delete": "account.write_settings",
    "POST /settings/applications/{client_id}/secret/end": "account.write_settings",
    "POST /settings/connected/{client_id}": "account.write_settings",
    "POST /settings/connected/{client_id}/revoke": "account.write_settings",
    "POST /settings/delete": "account.credentials",
    "POST /settings/email": "account.credentials",
    "POST /settings/email/confirmation": "account.write_settings",
    "POST /settings/organizations/invitations/{id}/accept": "account.write_settings",
    "POST /settings/organizations/invitations/{id}/decline": "account.write_settings",
    "POST /settings/organizations/{name}/leave": "account.write_settings",
    "POST /settings/password": "account.credentials",
    "POST /settings/profile": "account.write_settings",
    "POST /settings/rename": "account.write_settings",
    "POST /settings/sessions/end-others": "account.write_settings",
    "POST /settings/sessions/{id}/end": "account.write_settings",
    "POST /settings/tokens": "account.credentials",
    "POST /settings/tokens/{id}": "account.write_settings",
    "POST /settings/tokens/{id}/refresh": "account.credentials",
    "POST /settings/tokens/{id}/revoke": "account.write_settings",
    "POST /setup/{secret}": "hub.public",
    "POST /theme": "hub.public",
    "POST /verify/{secret}": "hub.public",
    "PUT /api/organizations/{name}/members/{user}/role": "org.write_members",
    "PUT /lfs/part/{repo_id}/{oid}": "hub.public",
    "PUT /lfs/upload/{repo_id}/{oid}": "hub.public",
}

# Under /api/{models,datasets,spaces}/{namespace}/{repo}.
OF_A_REPO_IN_THE_API = {
    ("DELETE", "/branch/{branch:path}"): "repo.write",
    ("DELETE", "/tag/{rev:path}"): "repo.write",
    ("GET", ""): "repo.see",
    ("GET", "/auth-check"): "repo.read_content",
    ("GET", "/auth-check/write"): "repo.write",
    ("GET", "/commits/{rev:path}"): "repo.see",
    ("GET", "/events"): "repo.see",
    ("GET", "/refs"): "repo.see",
    ("GET", "/revision/{rev:path}"): "repo.see",
    ("GET", "/tree/{rest:path}"): "repo.see",
    ("GET", "/xet-write-token/{rev:path}"): "repo.write",
    ("POST", "/branch/{branch:path}"): "repo.write",
    ("POST", "/commit/{rev:path}"): "repo.write",
    ("POST", "/paths-info/{rev:path}"): "repo.see",
    ("POST", "/preupload/{rev:path}"): "repo.write",
    ("POST", "/super-squash/{rev:path}"): "repo.write",
    ("POST", "/tag/{rev:path}"): "repo.write",
    ("PUT", "/settings"): "repo.configure",
}

# Under /{namespace}/{repo}, /datasets/... and /spaces/...
OF_A_REPO = {
    ("GET", ".git/info/refs"): "repo.read_content",
    ("GET", "/info/refs"): "repo.read_content",
    ("GET", "/raw/{rest:path}"): "repo.read_content",
    ("GET", "/resolve/{rest:path}"): "repo.read_content",
    ("POST", ".git/git-receive-pack"): "repo.write",
    ("POST", ".git/git-upload-pack"): "repo.read_content",
    ("POST", ".git/info/lfs/locks/verify"): "repo.read_content",
    ("POST", ".git/info/lfs/objects/batch"): "repo.read_content",
    ("POST", ".git/info/lfs/objects/verify"): "repo.read_content",
    ("POST", "/git-receive-pack"): "repo.write",
    ("POST", "/git-upload-pack"): "repo.read_content",
}


def every_row() -> dict[str, str]:
    rows = dict(GUARDED_BY)
    for kind in ("models", "datasets", "spaces"):
        folder = "" if kind == "models" else f"{kind}/"
        for (method, tail), action in OF_A_REPO_IN_THE_API.items():
            rows[f"{method} /api/{kind}/{{namespace}}/{{repo}}{tail}"] = action
        for (method, tail), action in OF_A_REPO.items():
            rows[f"{method} /{folder}{{namespace}}/{{repo}}{tail}"] = action
    return rows


@pytest.fixture
def routes(sqlite_template: Path, tmp_path: Path) -> list[Route]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    # With the optional routes too: metrics were asked for on the public address.
    settings = settings_for(url, tmp_path, port="8000", metrics_listen="127.0.0.1:8000")

    async def table() -> list[Route]:
        hub = await open_hub(settings)
        try:
            return list(build_app(hub).table.routes)
        finally:
            await hub.close()

    return blocking(table())


def test_every_route_is_listed_with_its_action(routes: list[Route]) -> None:
    assert {f"{route.method} {route.path}": route.action for route in routes} == every_row()


def test_every_action_of_a_route_is_in_the_registry(routes: list[Route]) -> None:
    assert {route.action for route in routes} <= ACTIONS
