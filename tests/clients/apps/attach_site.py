"""A hosted app that signs its users in with huggingface_hub, as in its documentation."""

import dataclasses
import os
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from huggingface_hub import HfApi, attach_huggingface_oauth, parse_huggingface_oauth

app = FastAPI()
attach_huggingface_oauth(app)


@app.get("/")
def greet(request: Request) -> dict[str, Any]:
    info = parse_huggingface_oauth(request)
    if info is None:
        return {"user": None}
    who = HfApi(endpoint=os.environ["OPENID_PROVIDER_URL"], token=info.access_token).whoami()
    return {"user": dataclasses.asdict(info.user_info), "scope": info.scope, "whoami": who}


uvicorn.Server(uvicorn.Config(app)).run(sockets=[socket.socket(fileno=int(os.environ["LISTEN_FD"]))])
