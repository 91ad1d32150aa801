"""Runs many `hf` commands in one process, because starting each takes a second.

Commands are read as a JSON list from standard input; for each, a list of status, output and errors is printed.
"""

import contextlib
import io
import json
import sys

from huggingface_hub.cli.hf import main


def run(arguments):
    sys.argv = ["hf", *arguments]
    out, errors, status = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        except Exception as error:
            status = f"{type(error).__name__}: {error}"
    return [status, out.getvalue(), errors.getvalue()]


print(json.dumps([run(arguments) for arguments in json.load(sys.stdin)]))
