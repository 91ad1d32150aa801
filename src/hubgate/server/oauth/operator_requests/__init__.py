"""Requests from app owners to the operator, for the token exchange privilege or for an operator-defined scope.

Owns the requests and the decisions; applying a granted request to the app belongs to `apps.privileges`.
"""
