"""Profile pictures of users and organizations, and logos of apps. An upload is never stored: a limited process draws it
anew, in a few sizes. Accounts without a picture have a generated one (`web/avatars.py`), which is not stored either.
"""
