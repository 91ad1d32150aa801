"""What app owners ask the operator for: the privilege of token exchange, or a scope of the operator's.

Owns the requests and their answers; what a granted one changes about the app belongs to `apps.privileges`.
"""
