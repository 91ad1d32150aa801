"""The specification's permissions as tables, written without the rules of `policy.py`.

FULL is what a signed-in user may do, by the place of the resource and the user's role there. A allow, F forbid (403),
H hide (404), `-` impossible. The columns:

own          in the user's own namespace          read, contributor, write, admin    the role in its organization
made         contributor who created the repo     stranger  someone else's           nobody  an anonymous visitor

Conditions of a repo: open (public, gated or not), or public, gated, admitted (gated and this user has access), private.
For a post also who wrote it.
"""

COLUMNS = ("own", "read", "contributor", "made", "write", "admin", "stranger", "nobody")

_FULL = """
                                            own read contr made write admin stranger nobody
repo.see                     open            A    A    A    A    A    A    A    A
repo.see                     private         A    A    A    A    A    A    H    H
repo.read_content            public          A    A    A    A    A    A    A    A
repo.read_content            gated           A    A    A    A    A    A    F    F
repo.read_content            admitted        A    A    A    A    A    A    A    F
repo.read_content            private         A    A    A    A    A    A    H    H
repo.write                   open            A    F    F    A    A    A    F    F
repo.write                   private         A    F    F    A    A    A    H    H
repo.configure               open            A    F    F    A    A    A    F    F
repo.configure               private         A    F    F    A    A    A    H    H
repo.manage                  open            A    F    F    A    A    A    F    F
repo.manage                  private         A    F    F    A    A    A    H    H
repo.read_requests           open            A    F    F    A    A    A    F    F
repo.read_requests           private         A    F    F    A    A    A    H    H
repo.ask_access              open            A    A    A    A    A    A    A    F
repo.ask_access              private         A    A    A    A    A    A    H    H
repo.list_owned              always          A    A    A    -    A    A    A    F
repo.create                  always          A    F    A    -    A    A    F    F
repo.leave_redirect          always          A    F    F    -    F    A    F    F
discussion.open              open            A    A    A    A    A    A    A    F
discussion.open              private         A    A    A    A    A    A    H    H
discussion.comment           open            A    A    A    A    A    A    A    F
discussion.comment           private         A    A    A    A    A    A    H    H
discussion.edit              open,mine       A    A    A    A    A    A    A    -
discussion.edit              open,theirs     F    F    F    F    F    F    F    F
discussion.edit              private,mine    A    A    A    A    A    A    H    -
discussion.edit              private,theirs  F    F    F    F    F    F    H    H
discussion.push              open,mine       A    A    A    A    A    A    A    -
discussion.push              open,theirs     F    F    F    F    F    F    F    F
discussion.push              private,mine    A    A    A    A    A    A    H    -
discussion.push              private,theirs  F    F    F    F    F    F    H    H
discussion.close             open,mine       A    A    A    A    A    A    A    -
discussion.close             open,theirs     A    F    F    A    A    A    F    F
discussion.close             private,mine    A    A    A    A    A    A    H    -
discussion.close             private,theirs  A    F    F    A    A    A    H    H
discussion.moderate          open,mine       A    F    F    A    A    A    F    -
discussion.moderate          open,theirs     A    F    F    A    A    A    F    F
discussion.moderate          private,mine    A    F    F    A    A    A    H    -
discussion.moderate          private,theirs  A    F    F    A    A    A    H    H
collection.read              open            A    A    A    -    A    A    A    A
collection.read              private         A    A    A    -    A    A    H    H
collection.create            always          A    F    F    -    A    A    F    F
collection.write             open            A    F    F    -    A    A    F    F
collection.write             private         A    F    F    -    A    A    H    H
account.identify             always          A    -    -    -    -    -    F    F
account.read_profile         always          A    -    -    -    -    -    F    F
account.read_email           always          A    -    -    -    -    -    F    F
account.read_billing         always          A    -    -    -    -    -    F    F
account.read_webhooks        always          A    -    -    -    -    -    F    F
account.write_webhooks       always          A    -    -    -    -    -    F    F
account.read_settings        always          A    -    -    -    -    -    F    F
account.write_settings       always          A    -    -    -    -    -    F    F
account.credentials          always          A    -    -    -    -    -    F    F
org.read_billing             always          -    A    A    -    A    A    F    F
org.read_members             always          -    A    A    -    A    A    F    F
org.write_members            always          -    F    F    -    F    A    F    F
org.read_settings            always          -    F    F    -    F    A    F    F
org.write_settings           always          -    F    F    -    F    A    F    F
org.read_apps                always          -    F    F    -    F    A    F    F
org.write_apps               always          -    F    F    -    F    A    F    F
org.read_audit_log           always          -    F    F    -    F    A    F    F
org.read_webhooks            always          -    F    F    -    F    A    F    F
org.write_webhooks           always          -    F    F    -    F    A    F    F
inference.use                always          A    A    A    -    A    A    F    F
jobs.read                    always          A    A    A    -    A    A    F    F
jobs.run                     always          A    F    F    -    A    A    F    F
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The hub itself has no owner: only the kind of caller matters.
HUB = {
    "hub.public": {"operator's session", "session", "tokens", "nobody"},
    "repo.list": {"operator's session", "session", "tokens", "nobody"},
    "collection.list": {"operator's session", "session", "tokens", "nobody"},
    "operator.use": {"operator's session"},
}

READS = _names(
    """
    repo.see repo.read_content repo.read_requests repo.list_owned collection.read
    account.identify account.read_profile account.read_email account.read_billing account.read_webhooks
    account.read_settings org.read_billing org.read_members org.read_settings org.read_apps
    org.read_audit_log org.read_webhooks jobs.read
    """
)

SESSION_ONLY = frozenset({"account.credentials"})

# CONTRACT.md, Roles: no scope opens applications, tokens, sessions, connected apps, members, settings, audit log.
CLOSED_TO_APPS = _names(
    """
    account.read_settings account.write_settings account.credentials
    org.read_members org.write_members org.read_settings org.write_settings org.read_apps org.write_apps
    org.read_audit_log repo.leave_redirect repo.ask_access
    """
)

WITHOUT_SCOPE = frozenset({"account.identify", "repo.list_owned"})

# Each scope and all that it allows by itself, on what the user may reach; from WIRE.md 24.
_READING = "repo.see repo.read_content"
_WRITING = f"{_READING} repo.write repo.configure"
OPENED_BY = {
    "openid": "",
    "profile": "account.read_profile",
    "email": "account.read_email",
    "read-billing": "account.read_billing org.read_billing",
    "read-repos": _READING,
    "gated-repos": "",
    "contribute-repos": "repo.create",
    "write-repos": _WRITING,
    "manage-repos": f"{_WRITING} repo.create repo.manage repo.read_requests",
    "read-collections": "collection.read",
    "write-collections": "collection.read collection.create collection.write",
    "inference-api": "inference.use",
    "jobs": "jobs.read jobs.run",
    "webhooks": "account.read_webhooks account.write_webhooks org.read_webhooks org.write_webhooks",
    "write-discussions": (
        "discussion.open discussion.comment discussion.edit discussion.push discussion.close discussion.moderate"
    ),
}
# What the two conditional scopes allow where their condition is met.
CONTRIBUTE_OPENS_IN_CREATED = _names(_WRITING)
GATED_OPENS_WHERE_ADMITTED = frozenset({"repo.read_content"})

# In the user's own area an exchanged token sees only who the user is.
KNOWN_ACROSS_THE_FENCE = frozenset({"account.identify", "account.read_profile", "account.read_email"})


def _parse(text: str) -> dict[str, dict[str, dict[str, str]]]:
    table: dict[str, dict[str, dict[str, str]]] = {}
    for line in text.strip().splitlines()[1:]:
        action, condition, *letters = line.split()
        cells = dict(zip(COLUMNS, letters, strict=True))
        assert condition not in table.setdefault(action, {}), f"{action} {condition} stands twice"
        table[action][condition] = cells
    return table


FULL = _parse(_FULL)
