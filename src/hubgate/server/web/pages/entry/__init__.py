"""Pages for signing up, signing in and out, the set-up of the hub, and links sent by e-mail.

Opening a mailed link changes nothing: the page asks the user to press a button, because mail scanners open links too.
Addresses here may contain a secret, in the path or in `next`, and their routes are marked accordingly.
"""
