"""The apps one builds, and those of an organization: one set of pages for both owners."""
