"""The test bed: fixtures and helpers that run the real hub against real services.

    postgres.py    real PostgreSQL servers of the supported versions
    engines.py     a fresh, migrated database on either engine, in milliseconds
    running_hub.py a hub on a real socket in this process, with a frozen clock; lean_http.py, the tests' HTTP client
    processes.py   `hubgate serve` in a separate process that a test can kill; fork_server.py starts it
                   without importing all modules again
    operator.py    the operator's shell
    people.py      users, tokens and signed-in browsers; organizations.py, helpers for organizations
    apps.py        third-party apps and the steps of signing in to them; cimd_documents.py, apps that were never
                   registered; error_explanations.py, the page that explains an OAuth error to an app's owner
    pictures.py    pictures to upload, and hostile files that look like them
    collections.py users with many collections
    audit_log.py   entries, sealing and retention on demand, an independent verifier
    dump.py        all values in the database; issued_secrets.py, every secret a hub issues
    concurrency.py concurrent calls
    clock.py       a frozen clock; blocking.py, coroutines run beside the browser's event loop
    testbuild.py   routes that exist only in tests; testserve.py, testweb.py and testdeliver.py, processes with these
                   routes and failpoints
    webhooks.py    webhooks, a receiver and delivery on demand; http_receiver.py, a receiver with scripted responses;
                   receiver_library.py, the receiver library on a real socket; replays.py, replays on demand
    upstream.py    a service behind the gateway, with scripted answers
    mailserver.py  a real SMTP server
    s3_server.py   a real S3-compatible server; go_programs.py builds it, and git-lfs
    small_disk.py  a real disk that fills up
    clients.py     public clients, each in a virtual environment; node.py, JavaScript clients; sites.py, web apps
    browser.py     a real Chromium
    demo.py        `hubgate demo` and what it prints
    plugin.py      the fixtures; groups.py, the suite as `make test` runs it; times.py, where a run spends its time

No part of the hub is mocked. The clock, randomness and remote services are passed in.
"""
