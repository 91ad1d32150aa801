"""The keys that sign ID tokens and the identities that the gateway sends to services, and the published key set with
which apps and services verify them.

A key is published before it signs and until the last token it signed has expired, so that a recipient with a cached
set can verify every signature. Private keys are stored sealed.
"""
