"""Why a request of an app was refused, told to the app's owner and to nobody else.

Owns what is kept of a refused request (names, and values that are harmless), for how long, and the comparison with what
is registered. The page belongs to `web`.
"""
