"""A web app that signs its users in with Authlib's client for Starlette, as in its documentation."""

import os
import socket

import uvicorn
from authlib.integrations.starlette_client import OAuth, OAuthError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

pkce = {"code_challenge_method": "S256"} if os.environ.get("PKCE") else {}
oauth = OAuth()
oauth.register(
    "hub",
    client_id=os.environ["CLIENT_ID"],
    client_secret=os.environ["CLIENT_SECRET"],
    server_metadata_url=f"{os.environ['HUB']}/.well-known/openid-configuration",
    client_kwargs={"scope": os.environ["SCOPES"], **pkce},
)


async def login(request: Request) -> Response:
    return await oauth.hub.authorize_redirect(request, request.url_for("callback"))


async def callback(request: Request) -> Response:
    try:
        token = await oauth.hub.authorize_access_token(request)
    except OAuthError as error:
        return JSONResponse({"error": error.error, "description": error.description})
    said = {"token": token, "userinfo": await oauth.hub.userinfo(token=token)}
    if "refresh_token" in token:
        said["refreshed"] = await oauth.hub.fetch_access_token(
            grant_type="refresh_token", refresh_token=token["refresh_token"]
        )
    return JSONResponse(said)


app = Starlette(
    routes=[Route("/login", login), Route("/callback", callback)],
    middleware=[Middleware(SessionMiddleware, secret_key="a secret of the app")],
)
uvicorn.Server(uvicorn.Config(app)).run(sockets=[socket.socket(fileno=int(os.environ["LISTEN_FD"]))])
