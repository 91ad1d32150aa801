"""The pages on which users manage their account, one file each.

Every page is about the caller's own account (`edge.routes.own`); a visitor is redirected to sign-in.
"""
