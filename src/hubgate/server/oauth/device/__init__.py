"""The device flow (RFC 8628): a device without a browser shows a code, and the user enters it in a browser elsewhere.

A code changes once from pending to approved or denied, and once from approved to consumed. Each change is one
conditional update, so that of concurrent decisions and polls exactly one wins.
"""
