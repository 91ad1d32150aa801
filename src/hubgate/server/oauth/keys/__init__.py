"""The keys that sign ID tokens, and the set that apps verify them with.

A key is published before it signs and until the last token it signed has expired, so that an app with a cached set can
verify every signature. Private keys are stored sealed.
"""
