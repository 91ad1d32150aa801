"""An organization's pages: creation, members, settings, deletion. One file per page; the public profile is separate."""
