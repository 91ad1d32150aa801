"""The actions that each route of a repo checks. Most routes exist for models, datasets and spaces."""

# Under /api/{models,datasets,spaces}/{namespace}/{repo}.
API_ROUTES = {
    ("DELETE", "/branch/{branch:path}"): "repo.write",
    ("DELETE", "/discussions/{num}"): "repo.see discussion.moderate",
    ("DELETE", "/discussions/{num}/ref"): "repo.see discussion.close",
    ("DELETE", "/tag/{rev:path}"): "repo.write",
    ("GET", ""): "repo.see",
    ("GET", "/auth-check"): "repo.read_content",
    ("GET", "/auth-check/write"): "repo.write",
    ("GET", "/commits/{rev:path}"): "repo.see",
    ("GET", "/compare/{revisions:path}"): "repo.read_content",
    ("GET", "/discussions"): "repo.see",
    ("GET", "/discussions/{num}"): "repo.see",
    ("GET", "/events"): "repo.see",
    ("GET", "/refs"): "repo.see",
    ("GET", "/revision/{rev:path}"): "repo.see",
    ("GET", "/tree/{rest:path}"): "repo.see",
    ("GET", "/user-access-request/{status}"): "repo.read_requests",
    ("GET", "/xet-read-token/{rev:path}"): "repo.read_content",
    ("GET", "/xet-write-token/{rev:path}"): "repo.see repo.write discussion.open discussion.push",
    ("POST", "/ask-access"): "repo.ask_access",
    ("POST", "/branch/{branch:path}"): "repo.write",
    ("POST", "/commit/{rev:path}"): "repo.see repo.write discussion.open discussion.push",
    ("PATCH", "/discussions/{num}/status"): "repo.see discussion.close",
    ("PATCH", "/discussions/{num}/title"): "repo.see discussion.close",
    ("POST", "/discussions"): "discussion.open",
    ("POST", "/discussions/{num}/comment"): "discussion.comment",
    ("POST", "/discussions/{num}/comment/{cid}/edit"): "repo.see discussion.edit",
    ("POST", "/discussions/{num}/comment/{cid}/hide"): "repo.see discussion.close",
    ("POST", "/discussions/{num}/comment/{cid}/reaction"): "discussion.comment",
    ("POST", "/discussions/{num}/merge"): "repo.write",
    ("POST", "/discussions/{num}/pin"): "repo.see discussion.moderate",
    ("POST", "/discussions/{num}/status"): "repo.see discussion.close",
    ("POST", "/discussions/{num}/title"): "repo.see discussion.close",
    ("POST", "/paths-info/{rev:path}"): "repo.see",
    ("POST", "/preupload/{rev:path}"): "repo.see repo.write discussion.open discussion.push",
    ("POST", "/super-squash/{rev:path}"): "repo.write",
    ("POST", "/tag/{rev:path}"): "repo.write",
    ("POST", "/user-access-request/batch"): "repo.manage",
    ("POST", "/user-access-request/cancel"): "repo.ask_access",
    ("POST", "/user-access-request/grant"): "repo.manage",
    ("POST", "/user-access-request/handle"): "repo.manage",
    ("PUT", "/settings"): "repo.configure repo.manage",
}

# Under /api/{models,datasets,spaces}/{repo}: answered as not found.
WITHOUT_NAMESPACE = (
    *("DELETE branch", "DELETE tag", "GET commits", "GET compare", "GET revision", "GET tree", "GET xet-read-token"),
    *("GET xet-write-token", "POST branch"),
    *("POST commit", "POST paths-info", "POST preupload", "POST super-squash", "POST tag"),
)

# Under /api/spaces/{namespace}/{repo} only.
SPACE_ROUTES = {
    ("DELETE", "/secrets"): "repo.configure",
    ("DELETE", "/variables"): "repo.configure",
    ("GET", "/logs/build"): "repo.configure",
    ("GET", "/logs/run"): "repo.configure",
    ("GET", "/runtime"): "repo.see",
    ("GET", "/secrets"): "repo.configure",
    ("GET", "/variables"): "repo.configure",
    ("POST", "/hardware"): "repo.configure",
    ("POST", "/pause"): "repo.configure",
    ("POST", "/restart"): "repo.configure",
    ("POST", "/secrets"): "repo.configure",
    ("POST", "/sleeptime"): "repo.configure",
    ("POST", "/variables"): "repo.configure",
}

# Under /spaces/{namespace}/{repo} only.
SPACE_PAGES = {
    ("GET", "/app"): "repo.see",
    ("GET", "/app/live"): "repo.see",
    ("GET", "/app/secrets/{key}/delete"): "repo.configure",
    ("GET", "/app/variables/{key}/delete"): "repo.configure",
    ("POST", "/app/pause"): "repo.configure",
    ("POST", "/app/restart"): "repo.configure",
    ("POST", "/app/secrets"): "repo.configure",
    ("POST", "/app/secrets/{key}/delete"): "repo.configure",
    ("POST", "/app/sleep"): "repo.configure",
    ("POST", "/app/variables"): "repo.configure",
    ("POST", "/app/variables/{key}/delete"): "repo.configure",
}

# Under /{namespace}/{repo}, /datasets/... and /spaces/...
OTHER_ROUTES = {
    ("GET", "/discussions"): "repo.see",
    ("GET", "/discussions/new"): "discussion.open",
    ("GET", "/discussions/{num}"): "repo.see",
    ("GET", "/discussions/{num}/comment/{cid}/edit"): "repo.see discussion.edit",
    ("GET", "/discussions/{num}/comment/{cid}/hide"): "repo.see discussion.close",
    ("GET", "/discussions/{num}/delete"): "repo.see discussion.moderate",
    ("GET", "/discussions/{num}/files"): "repo.see",
    ("POST", "/discussions"): "discussion.open",
    ("POST", "/discussions/{num}/comment"): "discussion.comment",
    ("POST", "/discussions/{num}/comment/{cid}/edit"): "repo.see discussion.edit",
    ("POST", "/discussions/{num}/comment/{cid}/hide"): "repo.see discussion.close",
    ("POST", "/discussions/{num}/comment/{cid}/reaction"): "discussion.comment",
    ("POST", "/discussions/{num}/delete"): "repo.see discussion.moderate",
    ("POST", "/discussions/{num}/merge"): "repo.write",
    ("POST", "/discussions/{num}/pin"): "repo.see discussion.moderate",
    ("POST", "/discussions/{num}/status"): "repo.see discussion.close",
    ("POST", "/discussions/{num}/title"): "repo.see discussion.close",
    ("GET", "/delete/{rest:path}"): "repo.see repo.write discussion.open discussion.push",
    ("GET", "/edit/{rest:path}"): "repo.see repo.write discussion.open discussion.push repo.read_content",
    ("GET", "/new/{rest:path}"): "repo.see repo.write discussion.open discussion.push",
    ("GET", "/upload/{rest:path}"): "repo.see repo.write discussion.open discussion.push",
    ("POST", "/delete/{rest:path}"): "repo.see repo.write discussion.open discussion.push",
    ("POST", "/edit/{rest:path}"): "repo.see repo.write discussion.open discussion.push repo.read_content",
    ("POST", "/new/{rest:path}"): "repo.see repo.write discussion.open discussion.push",
    ("POST", "/upload/{rest:path}"): "repo.see repo.write discussion.open discussion.push",
    ("GET", ".git"): "repo.see",
    ("GET", ".git/info/lfs/locks"): "repo.see",
    ("GET", ".git/info/refs"): "repo.see repo.write discussion.push repo.read_content",
    ("GET", "/info/refs"): "repo.see repo.write discussion.push repo.read_content",
    ("GET", "/raw/{rest:path}"): "repo.read_content",
    ("GET", "/resolve/{rest:path}"): "repo.see repo.read_content",
    ("GET", "/user-access-report"): "repo.read_requests",
    ("POST", ".git/git-receive-pack"): "repo.see repo.write discussion.push",
    ("POST", ".git/git-upload-pack"): "repo.read_content",
    ("POST", ".git/info/lfs/locks"): "repo.see",
    ("POST", ".git/info/lfs/locks/verify"): "repo.see",
    ("POST", ".git/info/lfs/objects/batch"): "repo.see repo.read_content repo.write discussion.open",
    ("POST", "/git-receive-pack"): "repo.see repo.write discussion.push",
    ("POST", "/git-upload-pack"): "repo.read_content",
}


def rows() -> dict[str, str]:
    """The actions of each route, for all types of repos."""
    of_spaces = [("/api/spaces", SPACE_ROUTES), ("/spaces", SPACE_PAGES)]
    rows = {
        f"{method} {prefix}/{{namespace}}/{{repo}}{tail}": action
        for prefix, actions in of_spaces
        for (method, tail), action in actions.items()
    }
    for kind in ("models", "datasets", "spaces"):
        folder = "" if kind == "models" else f"{kind}/"
        for (method, tail), action in API_ROUTES.items():
            rows[f"{method} /api/{kind}/{{namespace}}/{{repo}}{tail}"] = action
        for method, verb in map(str.split, WITHOUT_NAMESPACE):
            rows[f"{method} /api/{kind}/{{repo}}/{verb}/{{rest:path}}"] = "repo.see"
        for (method, tail), action in OTHER_ROUTES.items():
            rows[f"{method} /{folder}{{namespace}}/{{repo}}{tail}"] = action
    return rows
