"""Token exchange (RFC 8693): an organization's app gets a token for a member, named by e-mail, without consent.

`policy.py` decides, for the grant and for the dry run alike. A token is valid only while the membership, plan and
privilege last (`tokens/store.FIND_TOKEN`); each exchange is recorded in the organization's audit log.
"""
