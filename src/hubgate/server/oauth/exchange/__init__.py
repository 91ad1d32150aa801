"""Token exchange (RFC 8693): an organization's app takes a token for a member, named by e-mail, without asking them.

Who may, for whom and for what is judged in `judging.py`, for the grant and for the dry run alike. A token is good as
long as what it was taken under lasts (`tokens/store.FIND_TOKEN`); each exchange is in the organization's audit log.
"""
