"""Accounts: users, passwords, sessions, e-mail addresses, personal tokens, organizations and their members.

Owns identity and membership. Does not own permissions (`access`) or the apps that users sign in to (`oauth`).
"""
