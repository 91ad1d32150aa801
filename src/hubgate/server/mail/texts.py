"""The texts of all mails that the hub sends: short, with advice for recipients who did not cause them."""

from hubgate.server.mail.message import Message

_TURN_OFF = "\n\nYou can turn these mails off under Settings, Profile."


def confirm_address(recipient: str, link: str) -> Message:
    return Message(recipient, "Confirm your e-mail", f"Open {link} within 24 hours. Not you? Ignore this.")


def address_already_registered(recipient: str, reset_link: str) -> Message:
    text = f"Someone tried to join with this address, which already has an account. Forgot your password? {reset_link}"
    return Message(recipient, "You already have an account", f"{text} Not you? Ignore this.")


def address_in_use(recipient: str, sign_in_link: str) -> Message:
    text = f"Someone tried to use this address for another account. Sign in to yours: {sign_in_link}"
    return Message(recipient, "You already have an account", f"{text} Not you? Ignore this.")


def address_changed(recipient: str, new: str, link: str) -> Message:
    text = f"Your account now uses {new}. Not you? Ask the operator to restore it: {link}"
    return Message(recipient, "Your e-mail address was changed", text)


def reset_password(recipient: str, link: str) -> Message:
    text = f"Open {link} within 1 hour. Not you? Your password is unchanged."
    return Message(recipient, "Reset your password", text)


def password_changed(recipient: str, time: str, ip: str, revoked_text: str, link: str) -> Message:
    """`revoked_text` lists the revoked sessions and tokens, in whole sentences."""
    text = f"Changed {time} from {ip}. {revoked_text} Not you? Reset it: {link}"
    return Message(recipient, "Your password was changed", text)


def new_token(recipient: str, name: str, time: str, ip: str, link: str) -> Message:
    return Message(recipient, f"New token: {name}", f"Created {time} from {ip}. Not you? Revoke: {link}")


def token_expires(recipient: str, name: str, when: str, link: str) -> Message:
    text = f"It expires {when}. Scripts that use it are rejected from then on. Refresh or replace it: {link}"
    return Message(recipient, f"Token expires soon: {name}", text)


def token_revoked(recipient: str, name: str, link: str) -> Message:
    text = f"Someone reported this token as leaked, so it was revoked. Create another: {link}"
    return Message(recipient, f"Token revoked: {name}", text)


def invited_to_organization(recipient: str, organization: str, inviter: str, link: str) -> Message:
    text = f"{inviter} invites you to {organization}. Open {link} within 7 days. Not expected? Ignore this."
    return Message(recipient, f"Join {organization}", text)


def invited_to_hub(recipient: str, link: str) -> Message:
    return Message(recipient, "You are invited", f"Open {link} within 7 days to join. Not expected? Ignore this.")


def test_of_mail(recipient: str) -> Message:
    return Message(recipient, "Test mail", "Mail from this hub reaches you. An operator sent this test.")


def request_for_operator(recipient: str, permission: str, app: str, requester: str, link: str) -> Message:
    return Message(recipient, f"Request: {permission} for {app}", f"{requester} requested it. Grant or refuse: {link}")


def operator_decision(
    recipient: str, permission: str, app: str, granted: bool, link: str, *, needs_plan: bool = False
) -> Message:
    word, text = ("Granted", "You can use it now") if granted else ("Refused", "Ask again with another reason")
    if granted and needs_plan:
        text = "It works once the organization has the Enterprise plan, which the operator sets"
    return Message(recipient, f"{word}: {permission} for {app}", f"{text}. See {link}")


def webhook_failing(recipient: str, host: str, since: str, status: str, suspension: str, link: str) -> Message:
    state = f"No success since {since}; last answer {status}."
    text = f"{state} If no delivery succeeds, the webhook will be suspended on {suspension}. See {link}"
    return Message(recipient, f"Webhook failing: {host}", text)


def webhook_suspended(recipient: str, host: str, waiting: int, link: str) -> Message:
    events = "1 event is waiting" if waiting == 1 else f"{waiting:,} events are waiting"
    text = f"{events}. Re-enable and replay: {link}"
    return Message(recipient, f"Webhook suspended: {host}", text)


def webhook_app_revoked(recipient: str, host: str, app: str, link: str, app_verb: str, remedy: str) -> Message:
    """`app_verb` is the verb for the app's change to the webhook: "created" or "changed"."""
    reason = f"{app} {app_verb} this webhook and no longer has access, so nothing is sent."
    text = f"{reason} {remedy}, or delete the webhook: {link}"
    return Message(recipient, f"Webhook suspended: {host}", text)


def webhook_app_narrowed(recipient: str, host: str, app: str, link: str, app_verb: str) -> Message:
    text = f"{app} {app_verb} this webhook and may now read fewer private repos, so fewer events are sent. See {link}"
    return Message(recipient, f"Webhook sends fewer events: {host}", text)


def webhook_taken_over(recipient: str, host: str, app: str, link: str) -> Message:
    reason = f"{app} changed this webhook, so it now sends only events that {app} may read."
    text = f"{reason} Not intended? Take the webhook back or delete it: {link}"
    return Message(recipient, f"Webhook changed by {app}: {host}", text)


def discussion_activity(recipient: str, repo: str, num: int, title: str, sentence: str, link: str) -> Message:
    """`sentence` says who did what; `title` was chosen by any user."""
    shown = "".join(character for character in title if character.isprintable())
    text = f"{sentence} See {link}{_TURN_OFF}"
    return Message(recipient, f"{repo} #{num}: {shown}", text)


def access_requested(recipient: str, repo: str, requester: str, link: str) -> Message:
    text = f"{requester} asks for access. Accept or reject: {link}{_TURN_OFF}"
    return Message(recipient, f"Access request: {repo}", text)


def access_decision(recipient: str, repo: str, accepted: bool, link: str) -> Message:
    """A reason is shown on the page only: a mail contains no text of another user, and one link."""
    word, text = (
        ("granted", "Your request was accepted, so you can read its files. See")
        if accepted
        else ("rejected", "Your request was rejected, so you cannot read its files. See")
    )
    return Message(recipient, f"Access {word}: {repo}", f"{text} {link}{_TURN_OFF}")


def space_failed(recipient: str, space: str, reason: str, link: str) -> Message:
    text = f"Its app crashed five times in a row and is not started again. {reason} Logs, and Restart: {link}"
    return Message(recipient, f"Space {space} has stopped", text)
