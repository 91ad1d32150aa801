"""Pages for entering the hub: joining, signing in and out, set-up, and links sent by mail.

Opening a link only shows what it would do, and a button does it, because mail scanners open links too. Addresses here
may contain a secret, in the path or in `next`, and their routes are marked accordingly.
"""
