"""`GET /api/whoami-v2`: exactly what existing clients read, and nothing else."""

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

WHOAMI = "/api/whoami-v2"


def test_personal_token_is_described(hub: RunningHub) -> None:
    ada = create_user(hub, "Ada")
    organization = create_organization(hub, "acme", ada, plan="team")
    with api(hub, create_token(hub, ada, "read", "laptop")) as client:
        said = client.get(WHOAMI).json()
    created_at = said["auth"]["accessToken"].pop("createdAt")
    assert created_at.endswith("Z")
    assert said == {
        "type": "user",
        "id": ada.id,
        "name": "Ada",
        "fullname": "Ada",
        "email": "ada@example.org",
        "emailVerified": True,
        "canPay": False,
        "billingMode": "postpaid",
        "periodEnd": None,
        "isPro": False,
        "avatarUrl": f"/avatars/{ada.id}.svg",
        "orgs": [
            {
                "type": "org",
                "id": organization.id,
                "name": "acme",
                "fullname": "acme",
                "email": None,
                "avatarUrl": f"/avatars/{organization.id}.svg",
                "roleInOrg": "admin",
                "plan": "team",
                "periodEnd": None,
                "canPay": False,
                "billingMode": "postpaid",
            }
        ],
        "auth": {"type": "access_token", "accessToken": {"displayName": "laptop", "role": "read"}},
    }


def test_request_without_a_token_is_401(hub: RunningHub) -> None:
    response = httpx.get(hub.url + WHOAMI)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize("header", ["Bearer hf_wrong", "Bearer", "Basic YTpi", "hf_x", "Bearer api_org_x"])
def test_invalid_token_is_401(hub: RunningHub, header: str) -> None:
    response = httpx.get(hub.url + WHOAMI, headers={"authorization": header})
    assert response.status_code == 401
    assert response.headers["x-error-message"] == "Invalid credentials in Authorization header"


def test_session_cookie_is_ignored(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert client.get(WHOAMI).status_code == 401


def test_token_in_the_query_is_rejected(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    assert httpx.get(f"{hub.url}{WHOAMI}?access_token={token}").status_code == 400
