"""The RP-Initiated Logout plan of the OpenID Foundation's conformance suite, one test for each module.

Its discovery module is in `test_config.py`.
"""

from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from tests.attacks.test_o48_hints import forgeries
from tests.bed.people import Page
from tests.conformance.provider import AFTER_LOGOUT, STATE, Provider, Visit

PATH = "/oauth/logout"


def ask(op: Provider, visit: Visit, **changes: str | None) -> httpx.Response:
    """Sign in, then send the user to the sign-out page; None removes a parameter."""
    hint = op.tokens(visit)["id_token"]
    asked = {"id_token_hint": hint, "post_logout_redirect_uri": AFTER_LOGOUT, "state": STATE, **changes}
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    page = visit.browser.get(f"{PATH}?{query}")
    if page.status_code != 200:
        return page
    assert "Sign out of this hub?" in page.text
    return visit.browser.post(f"{PATH}?{query}", data=Page(page).hidden())


def is_signed_in(op: Provider, visit: Visit) -> bool:
    answer = op.answer(op.request(visit, prompt="none"))
    assert answer.get("error") in (None, "login_required")
    return "code" in answer


def assert_returned(response: httpx.Response, state: str | None) -> None:
    address = urlsplit(response.headers["location"])
    assert (response.status_code, address._replace(query="").geturl()) == (303, AFTER_LOGOUT)
    assert dict(parse_qsl(address.query)) == ({} if state is None else {"state": state})


def assert_signed_out_page(op: Provider, visit: Visit, response: httpx.Response) -> None:
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert "You are signed out." in visit.browser.get("/").text
    assert not is_signed_in(op, visit)


def assert_error_page(op: Provider, visit: Visit, response: httpx.Response) -> None:
    assert (response.status_code, "location" in response.headers) == (400, False)
    assert "Sign-out stopped" in response.text
    assert is_signed_in(op, visit)


def test_oidcc_rp_initiated_logout(op: Provider) -> None:
    with op.visit() as visit:
        assert_returned(ask(op, visit), STATE)
        assert not is_signed_in(op, visit)


def test_oidcc_rp_initiated_logout_bad_post_logout_redirect_uri(op: Provider) -> None:
    with op.visit() as visit:
        assert_error_page(op, visit, ask(op, visit, post_logout_redirect_uri=f"{AFTER_LOGOUT}-bad"))


def test_oidcc_rp_initiated_logout_modified_id_token_hint(op: Provider) -> None:
    with op.visit() as visit:
        forged = forgeries(op.hub, op.client, op.tokens(visit)["id_token"])
        assert_error_page(op, visit, ask(op, visit, id_token_hint=forged["alg none"]))


def test_oidcc_rp_initiated_logout_no_id_token_hint(op: Provider) -> None:
    with op.visit() as visit:
        assert_error_page(op, visit, ask(op, visit, id_token_hint=None))


def test_oidcc_rp_initiated_logout_no_params(op: Provider) -> None:
    with op.visit() as visit:
        response = ask(op, visit, id_token_hint=None, post_logout_redirect_uri=None, state=None)
        assert_signed_out_page(op, visit, response)


def test_oidcc_rp_initiated_logout_no_post_logout_redirect_uri(op: Provider) -> None:
    with op.visit() as visit:
        assert_signed_out_page(op, visit, ask(op, visit, post_logout_redirect_uri=None))


def test_oidcc_rp_initiated_logout_no_state(op: Provider) -> None:
    with op.visit() as visit:
        assert_returned(ask(op, visit, state=None), None)
        assert not is_signed_in(op, visit)


def test_oidcc_rp_initiated_logout_only_state(op: Provider) -> None:
    with op.visit() as visit:
        response = ask(op, visit, id_token_hint=None, post_logout_redirect_uri=None)
        assert_signed_out_page(op, visit, response)


def test_oidcc_rp_initiated_logout_query_added_to_post_logout_redirect_uri(op: Provider) -> None:
    with op.visit() as visit:
        assert_error_page(op, visit, ask(op, visit, post_logout_redirect_uri=f"{AFTER_LOGOUT}?foo=bar"))


def test_oidcc_rp_initiated_logout_bad_id_token_hint(op: Provider) -> None:
    with op.visit() as visit:
        forged = forgeries(op.hub, op.client, op.tokens(visit)["id_token"])
        assert_error_page(op, visit, ask(op, visit, id_token_hint=forged["another key"]))
