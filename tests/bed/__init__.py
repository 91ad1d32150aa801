"""The test bed: real parts, started fast.

    postgres.py    real PostgreSQL servers of the versions we support
    engines.py     a fresh, migrated database on either engine, in milliseconds
    running.py     a hub on a real socket in this process, with a clock that stands still
    processes.py   a hub as its operator runs it: `hubgate serve` in a process of its own, to be killed
    operator.py    the operator's shell
    people.py      users, tokens and signed-in browsers; organizations.py, what tests look at in an organization
    apps.py        third-party apps and the steps of signing in to them; documents.py, apps that were never registered
    explaining.py  the page that tells an app's owner why it was refused
    audit_log.py   entries, sealing and forgetting on demand, a verifier of its own
    dump.py        what a thief of the database reads; secrets_given.py, every secret a hub hands out
    at_once.py     several callers at the same moment
    clock.py       a clock that stands still until a test moves it; blocking.py, coroutines beside the browser's loop
    testbuild.py   routes that exist only in tests; testweb.py, a web process that has them
    receiver.py    a real HTTP receiver
    mailserver.py  a real SMTP server
    clients.py     public clients, each in an environment of its own; node.py, those in JavaScript; sites.py, web apps
    browser.py     a real Chromium
    plugin.py      the fixtures made of these

Nothing of the hub is replaced. Clock, randomness and the network's far end are passed in.
"""
