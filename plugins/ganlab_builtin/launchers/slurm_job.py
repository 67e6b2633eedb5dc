"""The body of a Slurm job: runs one command until it ends or the sweep stops it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ganlab.lazy import require
from ganlab_builtin.launchers.children import Child

# The file by which a sweep reaches a job, in a folder that both see: a number that grows while the sweep lives, or
# STOP. A signal could be lost on a job that is just starting, and Slurm kills jobs that do not end soon after one.
WORD, STOP = "word", "stop"
_LOOK_SECONDS, _WAIT_SECONDS = 1.0, 0.2
_TERMINATED = 128 + signal.SIGTERM


def leave_word(own: Path, text: str) -> None:
    """Leaves a message for a job, a number other than the last or `STOP`; it reads the old one or the new one."""
    part = own / f".{WORD}"
    part.write_text(text, encoding="utf-8")
    part.replace(own / WORD)


def run_in_job(
    command: list[str],
    environment: dict[str, str],
    folder: Path,
    log: Path,
    own: Path,
    orphan_seconds: float,
    grace_seconds: float,
) -> int:
    """The body of each task of a job: runs the command until it ends or is stopped.

    Args:
        command: The command and its arguments.
        environment: Variables to set in addition to those that exist.
        folder: The working directory.
        log: The file that output and errors are appended to; further nodes have a file beside it.
        own: The job's folder, where the sweep leaves messages.
        orphan_seconds: How long to continue without a message.
        grace_seconds: The time from SIGTERM to SIGKILL for the command.

    Returns:
        The command's exit status.
    """
    task = require("submitit").JobEnvironment()
    if task.num_tasks > 1:
        environment = {**environment, "TF_CONFIG": tf_config(task.hostnames, task.global_rank, task.job_id)}
    if task.global_rank:
        log = log.with_name(f"{log.stem}-{task.global_rank}{log.suffix}")
    received: list[int] = []

    def receive(number: int, frame: Any) -> None:
        received.append(number)

    # From Slurm: SIGTERM if the job is cancelled or preempted, SIGUSR2 before its time is up.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, receive)
    word = _Word(own / WORD, orphan_seconds)
    if word.says_stop():
        return _TERMINATED
    variables = {**os.environ, **environment}
    child = Child(command, environment=variables, folder=folder, log=log, grace_seconds=grace_seconds)
    stopping = False
    while (status := child.wait(_WAIT_SECONDS)) is None:
        if not stopping and (received or word.says_stop()):
            child.stop()
            stopping = True
    return status


class _Word:
    """The last message of a job's sweep."""

    def __init__(self, path: Path, orphan_seconds: float) -> None:
        self._path, self._orphan_seconds = path, orphan_seconds
        self._text: str | None = None
        self._heard_at, self._looked_at = time.monotonic(), -float("inf")

    def says_stop(self) -> bool:
        """Whether the sweep stopped this job, or is gone."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            # Read, not only stat: shared file systems may show old times, but new content to readers.
            with contextlib.suppress(OSError):
                text = self._path.read_text(encoding="utf-8")
                if text != self._text:
                    self._text, self._heard_at = text, now
        return self._text == STOP or now - self._heard_at >= self._orphan_seconds


def tf_config(hosts: Sequence[str], rank: int, job: str) -> str:
    """TF_CONFIG of one of several nodes, as in TensorFlow's documentation of `MultiWorkerMirroredStrategy`.

    All nodes derive the same port from the number of the job.
    """
    port = 20_000 + int(job.partition("_")[0]) % 10_000
    workers = [f"{host}:{port}" for host in hosts]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
