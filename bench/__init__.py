"""Benchmarks of the hub against common alternatives: ratios within a single run, no assertions on time.

`harness.py` runs the rounds and computes the tables, `workspace.py` provides disk and database; each other file is a
subject or a process that a subject starts. No other package imports this one; `python -m bench` (`make bench`) runs it.
"""
