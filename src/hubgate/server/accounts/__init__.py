"""Who people are: users, passwords, sessions, e-mail, personal tokens, organizations and their members.

Owns identity and membership. What an identity may do is decided by `access`; apps that people sign in to belong to
`oauth`.
"""
