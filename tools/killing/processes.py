"""`ganlab run` as a process that is stopped in one of the ways."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from killing.faults import Fault, Preload
from killing.kinds import Kind

_PLUGIN = Path(__file__).with_name("noting") / "ganlab_plugins.py"
# A process that takes longer hangs: the runs here train for seconds.
_LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code, negative for a signal.
        step: The last step whose row was written or about to be, or 0.
        seconds: The time from the signal to the end; 0 without a signal.
        errors: Its standard error.
        refused: Exit codes of processes that were started at the same time.
    """

    code: int
    step: int
    seconds: float
    errors: str
    refused: tuple[int, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """The experiment, as arguments of `ganlab run`, and the folder of runs."""

    arguments: tuple[str, ...]
    stem: str
    folder: Path

    def path(self, name: str) -> Path:
        """The folder of a run."""
        return self.folder / self.stem / name

    def command(self, name: str) -> list[str]:
        """The command that starts a run, or resumes it if it exists."""
        what = [*self.arguments, "--runs", str(self.folder), "--resume-or-start", name]
        return [sys.executable, "-m", "ganlab", "run", *what, "--plugin-file", str(_PLUGIN)]


def train(
    experiment: Experiment,
    name: str,
    preload: Preload,
    kind: Kind | None,
    fault: Fault,
    *,
    after: float = 0.0,
    keep_all: bool = False,
) -> Ended:
    """Trains until the end, or until the run is stopped.

    Args:
        experiment: The experiment.
        name: The run, which is resumed if it exists.
        preload: The library of faults.
        kind: How it is stopped; None for not at all.
        fault: The kind's fault, with the operation at which it comes.
        after: Seconds of training before a signal.
        keep_all: Whether no checkpoint is removed.
    """
    notes, errors = preload.log.with_suffix(".notes"), preload.log.with_suffix(".err")
    notes.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CHAOS_NOTES": str(notes),
        **({"CHAOS_KEEP_ALL": "1"} if keep_all else {}),
        **preload.environment(fault, experiment.path(name), logged=kind is None or kind.power),
    }
    with errors.open("wb") as to:
        command, null, count = experiment.command(name), subprocess.DEVNULL, kind.starts if kind else 1
        processes = [subprocess.Popen(command, env=environment, stdout=null, stderr=to) for _ in range(count)]
        try:
            process = _last(processes)
            sent = _send(process, kind, notes, after)
            code = process.wait(_LIMIT_SECONDS)
            seconds = time.monotonic() - sent if sent else 0.0
        finally:
            for each in processes:
                each.kill()
                each.wait()
    refused = tuple(each.returncode for each in processes if each is not process)
    return Ended(code, max(_noted(notes), default=0), seconds, errors.read_text(errors="replace"), refused)


def _last(processes: Sequence[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Waits until no more than one process runs, and returns it, or else one that has ended."""
    while len(running := [each for each in processes if each.poll() is None]) > 1:
        time.sleep(0.01)
    return [*running, *processes][0]


def _send(process: subprocess.Popen[bytes], kind: Kind | None, notes: Path, after: float) -> float | None:
    """Sends the kind's signal and returns the time; None if it has none or the process ended first."""
    if kind is None or kind.sent is None:
        return None
    deadline = time.monotonic() + _LIMIT_SECONDS
    while not notes.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(kind.sent)
        return time.monotonic()
    return None


def _noted(notes: Path) -> Sequence[int]:
    return [int(line) for line in notes.read_text().split()] if notes.exists() else []
