"""Organizations: creation, profile, members, invitations, deletion. Every change is recorded in the audit log."""
