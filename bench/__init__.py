"""Measurements of the hub beside what one would otherwise write: ratios from one run, never a timed assertion.

Owns the contestants and the tables; `harness.py` plays the rounds, `ground.py` is where they are played, every other
file is one subject or a process a subject starts. Nothing imports it; `python -m bench` (`make bench`) runs it.
"""
