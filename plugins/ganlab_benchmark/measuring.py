"""Asks a fresh process for a measurement, and ends it if the benchmark is stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from ganlab_sweep import environment

from ganlab import python_command, start_process

_POLL_SECONDS = 0.1
_TAIL = 300


class StoppedError(Exception):
    """The benchmark was asked to stop, and can be resumed."""


def measured(request: Mapping[str, Any], *, threads: int, limit: float, stopped: Callable[[], bool]) -> dict[str, Any]:
    """The answer of a fresh process.

    Args:
        request: What `ganlab_benchmark.child` reads.
        threads: Threads of the process.
        limit: Its longest time in seconds.
        stopped: Whether to stop.

    Returns:
        Its answer; one with `error` and `kind` if it ended without one or took too long.

    Raises:
        StoppedError: The benchmark was asked to stop.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = start_process(
            python_command("-m", "ganlab_benchmark.child"),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            env={**os.environ, **environment(threads)},
            start_new_session=True,  # Ctrl-C goes to the benchmark alone
        )
        try:
            assert child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(json.dumps(request).encode())
                child.stdin.close()
            began = time.monotonic()
            while child.poll() is None:
                if stopped():
                    raise StoppedError
                if time.monotonic() - began > limit:
                    return {"error": f"the measurement took longer than {limit:g} s", "kind": "failed"}
                time.sleep(_POLL_SECONDS)
        finally:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        output.seek(0)
        errors.seek(0)
        last_line = output.read().decode(errors="replace").strip().rpartition("\n")[2]
        complaint = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    try:
        answer = json.loads(last_line)
    except ValueError:
        answer = None
    if child.returncode or not isinstance(answer, dict):
        reason = complaint[-_TAIL:] or "it printed nothing"
        return {"error": f"the process ended with exit status {child.returncode}: {reason}", "kind": "failed"}
    return answer
