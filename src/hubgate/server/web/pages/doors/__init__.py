"""The doors of the hub: joining, signing in and out, set-up, and the links that come by mail.

Opening a link only shows what it would do: mail scanners open links too, so a button does it. Addresses here may hold
a secret, in the path or in where to go next, and are marked as such in their routes.
"""
