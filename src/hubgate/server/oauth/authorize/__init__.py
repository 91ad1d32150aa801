"""The interactive sign-in: a request is checked rule by rule, then one dispatcher says what the user sees next.

Owns the rules and the decision; pages belong to `web`. Pages never lead to one another: each comes back here.
"""
