"""Which events a webhook gets: a dry run before it is saved, the reason why an event was not sent, watched names that
do not exist, and suggestions for names.
"""
