"""Organizations: founding, profile, members, invitations, deletion. Every change is told to the audit log."""
