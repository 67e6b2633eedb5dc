"""Runs commands in forks of one process that has imported TensorFlow, which takes longer than most of them.

    python tests/forking.py '[["ganlab", "run", "--gin", "quickstart"], ["pytest", "mine"]]'

Prints the exit code and the output of each, as JSON. Every command has a process of its own, which is the first to use
a device, as if it had been started by itself. Standard error goes where this process's goes.
"""

import importlib
import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def run(program: str, arguments: list[str]) -> int:
    """Runs `ganlab` or `pytest` in this process and returns the exit code."""
    sys.argv = [program, *arguments]
    if program == "ganlab":
        from ganlab.cli import main

        main()
    import pytest

    return int(pytest.main(arguments))


def forked(program: str, arguments: list[str]) -> tuple[int, str]:
    """Runs a command in a fork; returns its exit code and its output."""
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            code: object = 1
            try:
                os.dup2(file.fileno(), 1)
                code = run(program, arguments)
            except SystemExit as end:
                code = end.code
            finally:
                sys.stdout.flush()
                os._exit(code if isinstance(code, int) else int(code is not None))
        _, status = os.waitpid(child, 0)
        file.seek(0)
        return os.waitstatus_to_exitcode(status), file.read().decode()


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as under `python -m`
    for name in ("tensorflow", "keras", "ganlab.training.start", "ganlab.testing", "pytest"):
        importlib.import_module(name)
    done = [forked(program, arguments) for program, *arguments in json.loads(sys.argv[1])]
    print(json.dumps(done))
