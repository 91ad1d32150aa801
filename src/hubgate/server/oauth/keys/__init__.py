"""The keys that sign ID tokens, and the set that apps verify them with.

A key is published before it signs and stays published until the last token it signed has expired, so that no app that
caches the set ever meets a signature it cannot check. Private halves are stored sealed.
"""
