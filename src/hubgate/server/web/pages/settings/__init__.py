"""The pages on which users look after their own account, one file for each.

Every one is judged on the caller's own account (`web/own_account.py`); a visitor is sent to sign in.
"""
