"""The interactive sign-in: a request is checked rule by rule, then a dispatcher chooses the next step.

Owns the rules and the decision; pages belong to `web`. Pages do not link to one another: each returns here.
"""
