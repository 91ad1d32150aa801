"""The demo: a seeded hub, an app that users sign in to, and a webhook receiver, started and stopped together.

Owns: the demo's data folder, its content and its tour. Does not own: the hub, which is an ordinary `hubgate serve` with
its data in a folder below the data folder. Called by `hubgate demo`.
"""
