"""An organization's pages: creation, settings, members, audit log. The public profile is separate."""
