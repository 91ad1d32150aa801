"""The test bed: real parts, started fast.

    postgres.py    real PostgreSQL servers of the versions we support
    engines.py     a fresh, migrated database on either engine, in milliseconds
    running.py     a hub on a real socket in this process, with a clock that stands still
    processes.py   a hub as its operator runs it: `hubgate serve` in a process of its own, to be killed
    testbuild.py   routes that exist only in tests
    receiver.py    a real HTTP receiver
    mailserver.py  a real SMTP server
    browser.py     a real Chromium
    plugin.py      the fixtures made of these

Nothing of the hub is replaced. Clock, randomness and the network's far end are passed in.
"""
