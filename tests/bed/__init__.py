"""The test bed: real parts, started fast.

    postgres.py    real PostgreSQL servers of the versions we support
    engines.py     a fresh, migrated database on either engine, in milliseconds
    running.py     a hub on a real socket in this process, with a clock that stands still
    processes.py   a hub as its operator runs it: `hubgate serve` in a process of its own, to be killed
    operator.py    the operator's shell
    people.py      users, tokens and signed-in browsers; organizations.py, what tests look at in an organization
    testbuild.py   routes that exist only in tests
    receiver.py    a real HTTP receiver
    mailserver.py  a real SMTP server
    clients.py     public clients, each in an environment of its own
    browser.py     a real Chromium
    plugin.py      the fixtures made of these

Nothing of the hub is replaced. Clock, randomness and the network's far end are passed in.
"""
