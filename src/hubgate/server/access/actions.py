"""The registry of actions. To add an action, add a row; the access matrix test fails until it covers the action."""

from enum import Enum, unique

from hubgate.server.access.resource import Account, Collection, Hub, Organization, Post, Repo
from hubgate.server.access.rule import RequiredCredential, Rule
from hubgate.server.accounts.roles import Role

_REPO, _POST, _COLLECTION, _HUB = (Repo,), (Post,), (Collection,), (Hub,)
_ACCOUNT, _ORG, _NAMESPACE = (Account,), (Organization,), (Account, Organization)
_ANY, _PERSONAL = RequiredCredential.ANY, RequiredCredential.PERSONAL
_MEMBER, _CONTRIBUTOR, _WRITER, _ADMIN = Role.READ, Role.CONTRIBUTOR, Role.WRITE, Role.ADMIN

_MANAGE = ("manage-repos",)
_WRITE = (*_MANAGE, "write-repos")
_READ = (*_WRITE, "read-repos")
_CREATOR = ("contribute-repos",)
_CREATE = (*_MANAGE, *_CREATOR)
_DISCUSS = ("write-discussions",)
_WRITE_COLLECTIONS = ("write-collections",)
_READ_COLLECTIONS = (*_WRITE_COLLECTIONS, "read-collections")
_WEBHOOKS = ("webhooks",)
_BILLING = ("read-billing",)
_JOBS = ("jobs",)


@unique
class Action(Enum):
    """Something a caller may do, such as creating a repo; `rule` says who may do it."""

    rule: Rule

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    # Probes, discovery, keys, static files, overviews of users and organizations.
    HUB_PUBLIC = Rule("hub.public", _HUB, "read this", RequiredCredential.NONE, read=True, public=True)
    # Anyone may list: the list leaves out repos that the caller may not see (`access/visibility.py`).
    REPO_LIST = Rule("repo.list", _HUB, "list repos", RequiredCredential.NONE, read=True, public=True)
    OPERATOR_USE = Rule("operator.use", _HUB, "use the operator's pages", RequiredCredential.OPERATOR)

    # Info, tree, history, discussions and the files exempt from the gate; a gated repo stays visible.
    REPO_SEE = Rule(
        "repo.see",
        _REPO,
        "see this repo",
        role=_MEMBER,
        read=True,
        public=True,
        scopes=_READ,
        creator_scopes=_CREATOR,
    )
    # Files, git fetch and the diff of a pull request.
    REPO_READ_CONTENT = Rule(
        "repo.read_content",
        _REPO,
        "read the files of this repo",
        role=_MEMBER,
        read=True,
        public=True,
        scopes=_READ,
        creator_scopes=_CREATOR,
        gate_scopes=("gated-repos",),
    )
    REPO_WRITE = Rule("repo.write", _REPO, "change this repo", role=_WRITER, scopes=_WRITE, creator_scopes=_CREATOR)
    # Settings other than visibility and gate.
    REPO_CONFIGURE = Rule(
        "repo.configure", _REPO, "change these settings", role=_WRITER, scopes=_WRITE, creator_scopes=_CREATOR
    )
    # Visibility, gate, move (which also requires repo.create at the target) and deletion.
    REPO_MANAGE = Rule("repo.manage", _REPO, "manage this repo", role=_WRITER, scopes=_MANAGE)
    # Any token may list; the list leaves out repos that the token may not see.
    REPO_LIST_OWNED = Rule("repo.list_owned", _NAMESPACE, "list the repos here with their sizes", _ANY, read=True)
    REPO_CREATE = Rule("repo.create", _NAMESPACE, "create repos here", role=_CONTRIBUTOR, scopes=_CREATE)

    # A redirect from a moved repo's old name to another namespace. No apps: the redirect would outlive the app's grant.
    REPO_LEAVE_REDIRECT = Rule(
        "repo.leave_redirect", _NAMESPACE, "leave a redirect to another namespace", _PERSONAL, role=_ADMIN
    )

    # Also covers a commit that creates a pull request.
    DISCUSSION_OPEN = Rule("discussion.open", _REPO, "open discussions", scopes=_DISCUSS)
    # Commits to the pull request's ref by its author; callers with repo.write do not need this action.
    DISCUSSION_PUSH = Rule("discussion.push", _POST, "push to this pull request", author=True, scopes=_DISCUSS)
    # Status, title, hiding a comment.
    DISCUSSION_CLOSE = Rule(
        "discussion.close", _POST, "close or retitle this", role=_WRITER, author=True, scopes=_DISCUSS
    )
    DISCUSSION_MODERATE = Rule("discussion.moderate", _POST, "pin or delete this", role=_WRITER, scopes=_DISCUSS)

    COLLECTION_READ = Rule(
        "collection.read",
        _COLLECTION,
        "see this collection",
        role=_MEMBER,
        read=True,
        public=True,
        scopes=_READ_COLLECTIONS,
    )
    COLLECTION_CREATE = Rule(
        "collection.create", _NAMESPACE, "create collections here", role=_WRITER, scopes=_WRITE_COLLECTIONS
    )
    COLLECTION_WRITE = Rule(
        "collection.write", _COLLECTION, "change this collection", role=_WRITER, scopes=_WRITE_COLLECTIONS
    )

    # An exchanged token may read its user's identity although that is outside the fence: the organization's app named
    # the user when it requested the token.
    ACCOUNT_IDENTIFY = Rule(
        "account.identify", _ACCOUNT, "see who you are", _ANY, role=_MEMBER, read=True, fenced=False
    )
    ACCOUNT_READ_PROFILE = Rule(
        "account.read_profile",
        _ACCOUNT,
        "see this profile",
        role=_MEMBER,
        read=True,
        scopes=("profile",),
        fenced=False,
    )
    ACCOUNT_READ_EMAIL = Rule(
        "account.read_email",
        _ACCOUNT,
        "see this e-mail address",
        role=_MEMBER,
        read=True,
        scopes=("email",),
        fenced=False,
    )
    ACCOUNT_READ_BILLING = Rule(
        "account.read_billing", _ACCOUNT, "see the billing state", role=_MEMBER, read=True, scopes=_BILLING
    )
    ACCOUNT_READ_WEBHOOKS = Rule(
        "account.read_webhooks", _ACCOUNT, "see webhooks", role=_ADMIN, read=True, scopes=_WEBHOOKS
    )
    ACCOUNT_WRITE_WEBHOOKS = Rule("account.write_webhooks", _ACCOUNT, "change webhooks", role=_ADMIN, scopes=_WEBHOOKS)
    # Profile, apps, connected apps, tokens and sessions (list, revoke), creating and leaving organizations.
    ACCOUNT_READ_SETTINGS = Rule(
        "account.read_settings", _ACCOUNT, "see account settings", _PERSONAL, role=_ADMIN, read=True
    )
    ACCOUNT_WRITE_SETTINGS = Rule("account.write_settings", _ACCOUNT, "change account settings", _PERSONAL, role=_ADMIN)
    # Password, e-mail, account deletion, new or refreshed tokens, consent: changes that would outlive a stolen token.
    ACCOUNT_CREDENTIALS = Rule(
        "account.credentials", _ACCOUNT, "change credentials", RequiredCredential.SESSION, role=_ADMIN
    )

    ORG_READ_BILLING = Rule("org.read_billing", _ORG, "see the billing state", role=_MEMBER, read=True, scopes=_BILLING)
    ORG_READ_MEMBERS = Rule("org.read_members", _ORG, "see the members", _PERSONAL, role=_MEMBER, read=True)
    ORG_WRITE_MEMBERS = Rule("org.write_members", _ORG, "change the members", _PERSONAL, role=_ADMIN)
    # Profile, billing flag, deletion.
    ORG_READ_SETTINGS = Rule("org.read_settings", _ORG, "see the settings", _PERSONAL, role=_ADMIN, read=True)
    ORG_WRITE_SETTINGS = Rule("org.write_settings", _ORG, "change the settings", _PERSONAL, role=_ADMIN)
    # Apps, their secrets, token duration, live exchanged tokens.
    ORG_READ_APPS = Rule("org.read_apps", _ORG, "see the apps", _PERSONAL, role=_ADMIN, read=True)
    ORG_WRITE_APPS = Rule("org.write_apps", _ORG, "change the apps", _PERSONAL, role=_ADMIN)
    ORG_READ_AUDIT_LOG = Rule("org.read_audit_log", _ORG, "see the audit log", _PERSONAL, role=_ADMIN, read=True)
    ORG_READ_WEBHOOKS = Rule("org.read_webhooks", _ORG, "see webhooks", role=_ADMIN, read=True, scopes=_WEBHOOKS)
    ORG_WRITE_WEBHOOKS = Rule("org.write_webhooks", _ORG, "change webhooks", role=_ADMIN, scopes=_WEBHOOKS)

    # Checked on the namespace that pays.
    INFERENCE_USE = Rule(
        "inference.use", _NAMESPACE, "send inference requests", role=_MEMBER, scopes=("inference-api",)
    )
    JOBS_READ = Rule("jobs.read", _NAMESPACE, "see jobs", role=_MEMBER, read=True, scopes=_JOBS)
    JOBS_RUN = Rule("jobs.run", _NAMESPACE, "run jobs", role=_WRITER, scopes=_JOBS)


SCOPES_WITHOUT_ACTION = frozenset({"openid"})
"""Scopes that no action requires: they affect which tokens are issued (the ID token), not permissions."""
