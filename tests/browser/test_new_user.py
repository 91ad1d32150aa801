"""A new hub and a new user, in a real browser, with script and without: from the set-up link to signing out."""

import email
import email.policy
import re
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.bed.processes import HubProcess, hub_process, until

pytestmark = pytest.mark.browser

PASSWORD = "correct horse battery"


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def scripted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    with hub_process(tmp_path) as hub:
        yield hub
        assert hub.stop() == 0


class Visitor:
    """One browser; a console message fails the test."""

    def __init__(self, browser: Browser, hub: HubProcess, *, scripted: bool) -> None:
        self.context: BrowserContext = browser.new_context(base_url=hub.url, java_script_enabled=scripted)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def fill(self, **fields: str) -> None:
        for name, value in fields.items():
            self.page.locator(f"main [name={name}]").fill(value)

    def press(self, name: str) -> None:
        self.page.locator("main").get_by_role("button", name=name, exact=True).click()

    def sees(self, text: str) -> None:
        expect(self.page.locator("main")).to_contain_text(text)

    def close(self) -> None:
        assert self.said == []
        self.context.close()


def setup_link(hub: HubProcess) -> str:
    assert hub.process.stdout is not None
    for line in hub.process.stdout:
        if found := re.search(r"(/setup/\S+)", line.decode()):
            return found.group(1)
    raise AssertionError("no set-up link was printed")


def mailed(folder: Path, address: str, subject: str) -> str:
    """The path of the link in the mail to `address` with that subject."""

    def mails() -> list[EmailMessage]:
        files = folder.glob("var/mail/*.eml")
        parsed = [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]
        return [mail for mail in parsed if mail["To"] == address and mail["Subject"] == subject]

    until(mails)
    found = re.search(r"https?://[^/\s]+(/\S+)", mails()[-1].get_content())
    assert found
    return found.group(1)


def test_new_user_gets_from_the_setup_link_to_signing_out(
    browser: Browser, hub: HubProcess, tmp_path: Path, scripted: bool
) -> None:
    operator, ada = (Visitor(browser, hub, scripted=scripted) for _ in range(2))

    operator.page.goto(setup_link(hub))
    operator.fill(username="olga", email="olga@example.org", password=PASSWORD)
    operator.press("Create the operator account")
    operator.page.goto("/operator")
    expect(operator.page.get_by_role("heading", level=1)).to_have_text("Overview")

    ada.page.goto("/")
    ada.page.locator("main").get_by_role("link", name="Join").click()
    ada.fill(username="Olga", email="ada@example.org", password=PASSWORD)
    ada.press("Join")
    expect(ada.page.get_by_role("alert")).to_contain_text("Olga is already taken.")
    ada.said.clear()  # Chromium itself reports the 422.
    ada.fill(username="ada", password=PASSWORD)
    ada.press("Join")
    ada.sees("Check your email.")

    ada.page.goto(mailed(tmp_path, "ada@example.org", "Confirm your e-mail"))
    ada.fill(password=PASSWORD)
    ada.press("Confirm")
    ada.page.goto("/login")
    ada.fill(username="ada@example.org", password=PASSWORD)
    ada.press("Sign in")

    ada.page.goto("/settings/organizations")
    ada.page.get_by_role("link", name="New organization").click()
    ada.fill(name="acme", fullname="Acme Research")
    ada.press("Create organization")
    ada.page.goto("/organizations/acme/settings/members")
    ada.fill(invitee="olga")
    ada.page.locator("main form select[name=role]").first.select_option("write")
    ada.press("Invite")
    ada.sees("olga")

    operator.page.goto(mailed(tmp_path, "olga@example.org", "Join acme"))
    operator.press("Accept")
    operator.page.goto("/settings/organizations")
    operator.sees("acme")

    ada.page.goto("/organizations/acme/settings/members")
    ada.page.get_by_label("Role of olga").select_option("admin")
    ada.page.get_by_role("button", name="Save role of olga").click()
    expect(ada.page.get_by_label("Role of olga")).to_have_value("admin")

    ada.page.goto("/settings/tokens")
    ada.fill(name="laptop")
    ada.press("Create token")
    expect(ada.page.get_by_label("Token", exact=True)).to_have_value(re.compile(r"^hf_[0-9A-Za-z]{41}$"))
    ada.sees("Copy it now. Only a fingerprint is stored, so it cannot be shown again.")
    ada.page.reload()
    ada.page.goto("/settings/tokens")
    assert ada.page.locator("table").get_by_text("laptop").count() == 1

    ada.page.goto("/organizations/acme/settings/audit-log")
    for sentence in ("created acme", "invited olga as write", "joined as write", "from write to admin"):
        ada.sees(sentence)

    ada.page.get_by_role("button", name="Your menu").click()
    ada.page.get_by_role("button", name="Sign out").click()
    expect(ada.page.locator("main").get_by_role("link", name="Sign in")).to_be_visible()
    ada.page.goto("/settings/tokens")
    expect(ada.page).to_have_url(re.compile(r"/login\?next="))

    for visitor in (operator, ada):
        visitor.close()
