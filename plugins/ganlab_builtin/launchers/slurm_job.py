"""What a job of Slurm's does: runs one command, until that ends or the sweep says stop."""

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

# What a sweep says in a job's folder, which both see: a number that grows while the sweep lives, or STOP. A signal
# would be lost on a job that is just beginning, and Slurm kills what does not end within seconds of one.
WORD, STOP = "word", "stop"
_LOOK_SECONDS, _WAIT_SECONDS = 1.0, 0.2
_TERMINATED = 128 + signal.SIGTERM


def leave_word(own: Path, text: str) -> None:
    """Says something to a job; it reads the old word or the new one.

    Args:
        own: The job's folder.
        text: A number other than the last, or `STOP`.
    """
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
    """What each task of a job does: runs the command until it ends, or until it has to.

    Args:
        command: Its words.
        environment: What to set beside the variables that are there.
        folder: The working directory.
        log: The file that its output and errors are added to; of further nodes, one beside it.
        own: The job's folder, where the sweep leaves word.
        orphan_seconds: How long to go on without word.
        grace_seconds: From SIGTERM to SIGKILL for the command.

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

    # Of Slurm: SIGTERM where the job is cancelled or preempted, SIGUSR2 before its time is up.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, receive)
    word = _Word(own / WORD, orphan_seconds)
    if word.says_stop():
        return _TERMINATED
    variables = {**os.environ, **environment}
    child = Child(command, environment=variables, folder=folder, log=log, grace_seconds=grace_seconds)
    told = False
    while (status := child.wait(_WAIT_SECONDS)) is None:
        if not told and (received or word.says_stop()):
            child.stop()
            told = True
    return status


class _Word:
    """What a job last heard from its sweep."""

    def __init__(self, path: Path, orphan_seconds: float) -> None:
        self._path, self._orphan_seconds = path, orphan_seconds
        self._text: str | None = None
        self._heard_at, self._looked_at = time.monotonic(), -float("inf")

    def says_stop(self) -> bool:
        """Whether the sweep told this job to stop, or is no more."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            # Read, not only looked at: shared file systems may show old times, but show what is new to who opens.
            with contextlib.suppress(OSError):
                text = self._path.read_text(encoding="utf-8")
                if text != self._text:
                    self._text, self._heard_at = text, now
        return self._text == STOP or now - self._heard_at >= self._orphan_seconds


def tf_config(hosts: Sequence[str], rank: int, job: str) -> str:
    """TF_CONFIG of one of several nodes, as TensorFlow's documentation of `MultiWorkerMirroredStrategy` has it.

    Args:
        hosts: The nodes' names, in the order of their ranks.
        rank: Which of them this is.
        job: The job's number, from which all nodes take the same port.

    Returns:
        The JSON text.
    """
    port = 20_000 + int(job.partition("_")[0]) % 10_000
    workers = [f"{host}:{port}" for host in hosts]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})
