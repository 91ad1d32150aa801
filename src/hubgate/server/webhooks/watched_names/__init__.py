"""Watches follow names: one whose name no longer leads to its target waits for the next of that name (O69)."""
