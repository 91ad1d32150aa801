"""O53: logs hold no code, token, secret, verifier or password, wherever in a request it stood."""

from tests.bed.running import RunningHub

from hubgate.server.logs import redacted

SECRETS = {
    "token": "hf_oauth_AbCdEfGhIjKlMnOpQr",
    "password": "correct-horse-battery",
    "code": "SplxlOBeZQQYbYS6WxSbIA",
    "verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "secret": "whsec_C2FVsBQIhrscChlQIMV",
}


def test_o53_nothing_secret_reaches_the_log(hub: RunningHub) -> None:
    with hub.client() as client:
        for name, secret in SECRETS.items():
            client.get(f"/api/test/who?{name}={secret}", headers={"authorization": f"Bearer {secret}"})
            client.get(f"/nothing/{secret}")
            client.get(f"/api/test/part/{secret}/rest/{secret}")
            client.post("/api/test/echo", data={name: secret}, headers={"cookie": f"token={secret}"})
            client.post("/api/test/write", json={"name": secret, "value": [secret]})
            client.post("/api/test/write", json={"name": secret, "value": secret})
            client.get("/healthz", headers={"referer": f"https://app.example/?{name}={secret}", "user-agent": secret})
        assert client.get("/api/test/broken").status_code == 500
    assert hub.log.count('"request_id"') >= 30
    for secret in (*SECRETS.values(), "hunter2SECRET"):
        assert secret not in hub.log


def test_o53_every_line_names_its_request(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/api/test/broken")
    lines = [line for line in hub.log.splitlines() if response.headers["x-request-id"] in line]
    assert len(lines) == 2, "the error and the request"


def test_o53_the_second_fence() -> None:
    line = (
        "GET /x?code=abc&state=1 Authorization: Bearer abcdefghij postgresql://hub:pa%20ss@db/x hf_abcdefgh "
        "client_secret=s3cr3t whsec_abcdefgh code_verifier=xyz"
    )
    shown = redacted(line)
    for secret in ("abc&", "abcdefghij", "pa%20ss", "hf_abcdefgh", "s3cr3t", "whsec_abcdefgh", "xyz"):
        assert secret not in shown
    assert "state=1" in shown
