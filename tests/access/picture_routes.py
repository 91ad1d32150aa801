"""The actions that the routes of pictures and logos check."""

# For users and for organizations.
UPLOADS = {
    "/settings/picture": ("account.write_settings", "org.write_settings"),
    "/settings/applications/{client_id}/logo": ("account.write_settings", "org.write_apps"),
}


def rows() -> dict[str, str]:
    return {
        f"POST {owner}{path}{tail}": action
        for path, actions in UPLOADS.items()
        for owner, action in zip(("", "/organizations/{name}"), actions, strict=True)
        for tail in ("", "/delete")
    }
