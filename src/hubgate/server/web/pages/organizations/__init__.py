"""An organization's own pages: founding, members, settings, deletion. One file per page; the profile is public."""
