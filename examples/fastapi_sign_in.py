"""A web app whose users sign in with their account on the hub."""

import html
import os

from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import Response

HUB = os.environ["HUB"]

app = FastAPI()
# The session is a signed cookie. With "lax", browsers do not send it with forms of other sites.
app.add_middleware(SessionMiddleware, secret_key=os.environ["SESSION_SECRET"], same_site="lax")

oauth = OAuth()
oauth.register(
    "hub",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    # Authlib reads the addresses and keys of the hub from here.
    server_metadata_url=f"{HUB}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
)


@app.get("/")
async def home(request: Request) -> HTMLResponse:
    user = request.session.get("user")
    if user is None:
        return HTMLResponse('<a href="/login">Sign in</a>')
    # Users choose their names: always escape them.
    name = html.escape(user["name"])
    return HTMLResponse(f'<h1>Hello {name}</h1><form method="post" action="/logout"><button>Sign out</button></form>')


@app.get("/login")
async def login(request: Request) -> Response:
    return await oauth.hub.authorize_redirect(request, request.url_for("callback"))


@app.get("/callback")
async def callback(request: Request) -> Response:
    try:
        # Checks state, nonce, and the signature, issuer and audience of the ID token.
        token = await oauth.hub.authorize_access_token(request)
    except OAuthError as error:
        raise HTTPException(400, error.description or error.error) from error
    claims = token["userinfo"]
    # `sub` never changes; the name can. The access token is not stored, because this app needs no API.
    request.session["user"] = {"id": claims["sub"], "name": claims["preferred_username"]}
    return RedirectResponse("/", 303)


@app.post("/logout")
async def logout(request: Request) -> Response:
    request.session.clear()
    return RedirectResponse("/", 303)
