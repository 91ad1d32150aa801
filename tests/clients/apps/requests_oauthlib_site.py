"""A web app that signs its users in with requests-oauthlib, as in its documentation, with PKCE."""

import os
from typing import Any

from requests_oauthlib import OAuth2Session
from two_routes import CALLBACK, HUB, SCOPES, serve

# The test's hub uses plain http.
os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
secret = os.environ["CLIENT_SECRET"]
session = OAuth2Session(os.environ["CLIENT_ID"], redirect_uri=CALLBACK, scope=SCOPES, pkce="S256")


def login() -> str:
    address, _ = session.authorization_url(f"{HUB}/oauth/authorize")
    return address


def callback(address: str) -> dict[str, Any]:
    token = session.fetch_token(f"{HUB}/oauth/token", authorization_response=address, client_secret=secret)
    userinfo = session.get(f"{HUB}/oauth/userinfo").json()
    refreshed = session.refresh_token(f"{HUB}/oauth/token", auth=(os.environ["CLIENT_ID"], secret))
    return {"token": token, "sub": userinfo["sub"], "email": userinfo["email"], "refreshed": refreshed}


serve(login, callback)
