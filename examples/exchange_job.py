"""A nightly job of an organization that acts as each of its members: it counts the datasets that they can see.

exchange_job.py ORGANIZATION < emails.txt
"""

import os
import sys

import httpx

EXCHANGE = {
    "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
    "subject_token_type": "urn:service:token-type:user-email",
    # Less than the app may request: a leaked token can do less.
    "scope": "read-repos",
}


def datasets_of(hub: httpx.Client, organization: str, email: str) -> int:
    answer = hub.post("/oauth/token", data={**EXCHANGE, "subject_token": email})
    if answer.is_client_error:
        raise PermissionError(answer.json()["error_description"])
    token = answer.raise_for_status().json()["access_token"]
    try:
        count, address = 0, f"/api/datasets?author={organization}"
        while address:
            # The token replaces the app's own credentials in this request.
            page = hub.get(address, headers={"Authorization": f"Bearer {token}"}, auth=None).raise_for_status()
            count += len(page.json())
            address = page.links.get("next", {}).get("url", "")
        return count
    finally:
        # The job needs the token for a second, not for hours.
        hub.post("/oauth/revoke", data={"token": token})


def main() -> int:
    (organization,) = sys.argv[1:]
    auth = (os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
    failures = 0
    with httpx.Client(base_url=os.environ["HUB"], auth=auth, timeout=30) as hub:
        for email in sys.stdin.read().split():
            try:
                print(f"{email}: {datasets_of(hub, organization, email)} datasets", flush=True)
            except (PermissionError, httpx.HTTPError) as error:
                # One member who has left must not stop the job for the others.
                print(f"{email}: {error}", file=sys.stderr)
                failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
