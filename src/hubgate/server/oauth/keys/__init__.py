"""The keys that sign ID tokens, and the published key set with which apps verify the tokens.

A key is published before it signs and until the last token it signed has expired, so that an app with a cached set can
verify every signature. Private keys are stored sealed.
"""
