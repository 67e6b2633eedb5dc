"""One run of a sweep: its process, and what is known of it from its directory."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.interfaces import Job
from ganlab.runs.changes import Change, changes_of
from ganlab.runs.directory import INFO, METRICS, RunDirectory
from ganlab.runs.fields import check_fields
from ganlab.runs.health import complaints_of, warnings_of
from ganlab.runs.lock import holder
from ganlab.support.paths import open_inside
from ganlab.sweeps.metric_follower import Trail, last_value
from ganlab.sweeps.store import Sweep

QUEUED, WAITING, RUNNING = "queued", "waiting", "running"
COMPLETED, INTERRUPTED, PRUNED = "completed", "interrupted", "pruned"
FAILED, DIVERGED, TIMED_OUT = "failed", "diverged", "timed out"
# What a sweep has no more work with, unless it is to try what failed again.
ENDED = (COMPLETED, FAILED, DIVERGED, TIMED_OUT, PRUNED)

# What a run's own file says of one that is not running.
_OF_RUNS = (COMPLETED, INTERRUPTED, FAILED, DIVERGED)

# What is shown of a trial where the sweep has no objective.
_WORTH_A_GLANCE = "critic/loss"
_LOG_BYTES = 1 << 16
# As the command line begins every one.
_ERROR = "Error: "
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Trial:
    """One configuration with one seed.

    Attributes:
        sweep: The sweep that it is part of.
        configuration: The configuration's name.
        seed: The seed.
        tag: The metric that is followed.
        status: `queued`, `waiting` (an earlier process still holds the run), `running`, `completed`, `failed`,
            `diverged`, `interrupted`, `timed out`, or `pruned` where the search gave it up.
        step: Generator updates done, as far as that is known.
        steps: Of the whole run; None while that is not known.
        seconds: That it trained, in all of its processes.
        value: The last value of the metric.
        error: Why it failed, or whom it waits for.
        health: What was wrong at its run's last look; None while nobody has looked.
        changes: What of its run was changed midway, by hand.
        warnings: What its run has warned of.
        job: Its process.
        stopped_at: When that was asked to end; None where it was not.
    """

    sweep: Sweep
    configuration: str
    seed: int
    tag: str
    status: str = QUEUED
    step: int = 0
    steps: int | None = None
    seconds: float = 0.0
    value: float | None = None
    error: str = ""
    health: tuple[str, ...] | None = None
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()
    job: Job | None = None
    stopped_at: float | None = None

    def __post_init__(self) -> None:
        self.trail = Trail(self.run, self.tag)
        self._began, self._before, self._log_begins = 0.0, 0.0, 0
        self._written: tuple[int, ...] = ()
        self._written_at = 0.0

    @property
    def name(self) -> str:
        """Where it is in the sweep's folder: `gradient_penalty.weight=10/s0`."""
        return f"{self.configuration}/s{self.seed}"

    @property
    def run(self) -> Path:
        """Its run directory, there or not."""
        return self.sweep.run(self.configuration, self.seed)

    @property
    def log(self) -> Path:
        """What its processes said."""
        return self.sweep.log(self.configuration, self.seed)

    def held(self) -> str | None:
        """Who trains it, perhaps a process that an earlier process of the sweep started; None for nobody."""
        return holder(self.run) if self.run.exists() else None

    def wait(self, who: str, now: float) -> float:
        """Notes that it waits for whoever trains it.

        Args:
            who: The process, in words.
            now: The time in seconds.

        Returns:
            For how long that process has written nothing.
        """
        written = tuple(_written(self.run / name) for name in (INFO, METRICS))
        if self.status != WAITING or written != self._written:
            self._written, self._written_at = written, now
        self.status, self.error = WAITING, f"held by {who}"
        return now - self._written_at

    def begin(self, job: Job, now: float, log_begins: int) -> None:
        """Notes that a process of it was started.

        Args:
            job: The process.
            now: The time in seconds.
            log_begins: The size that the log had before.
        """
        self.job, self.status, self.error, self.stopped_at = job, RUNNING, "", None
        self._began, self._before, self._log_begins = now, self.seconds, log_begins

    def follow(self, now: float) -> None:
        """Brings step, value and time of a running trial up to date.

        Args:
            now: The time in seconds.
        """
        self.seconds = self._before + now - self._began
        self.trail.follow()
        if self.trail.values:
            self.value = self.trail.values[max(self.trail.values)]
        self.step = self.trail.step or self.step
        if self.steps is None:
            self.steps = self._info().get("steps")

    def end(self, exit_status: int) -> None:
        """Takes the end of its process, and what the run directory says of it.

        Args:
            exit_status: The process's, 128 and the signal's number where one ended it.
        """
        self.job = None
        self.look()
        if self.status == QUEUED:  # it left no run
            self.status = INTERRUPTED if exit_status > 128 else FAILED
        elif self.status == INTERRUPTED and exit_status in (0, 2):  # 2: it would not go on with the run
            self.status = FAILED
        if self.status != COMPLETED:
            self.error = self.last_error() or f"its process ended with exit status {exit_status}"

    def look(self) -> None:
        """Takes status, step, time and value from the run directory, where there is one."""
        info = self._info()
        if not info:
            self.status = QUEUED
            return
        status = info.get("status")
        self.status = INTERRUPTED if status == RUNNING else str(status) if status in _OF_RUNS else FAILED
        self.step, self.steps = info.get("step", self.step), info.get("steps", self.steps)
        self.seconds = info.get("wall_seconds", self.seconds)
        self.value = last_value(self.run, self.tag, self.trail)
        self.health, self.warnings = complaints_of(info), warnings_of(info)
        self.changes = changes_of(info)

    def _info(self) -> Mapping[str, Any]:
        try:
            info = RunDirectory(self.run).info
            check_fields(info, self.run / INFO)
        except RunError:
            return {}
        return info

    def last_error(self) -> str:
        """The last error that its last process told, without the word; empty where it told none."""
        try:
            with open_inside(self.sweep.path, self.log.relative_to(self.sweep.path)) as file:
                size = file.seek(0, 2)
                file.seek(max(self._log_begins, size - _LOG_BYTES))
                said = _ESCAPE.sub("", file.read(_LOG_BYTES).decode(errors="replace"))
        except (OSError, RunError):
            return ""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        errors = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
        # What died without such a line says most in its last one, such as that of a traceback.
        return errors[-1] if errors else lines[-1] if lines and self.status == FAILED else ""


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def trials_of(sweep: Sweep, configuration: str) -> list[Trial]:
    """A configuration's trials, one for each seed, with nothing known of them."""
    tag = sweep.asked["objective"] or _WORTH_A_GLANCE
    return [Trial(sweep, configuration, seed, tag) for seed in sweep.asked["seeds"]]


def take_up(sweep: Sweep, *, retry_failed: bool = False) -> list[Trial]:
    """All trials of a sweep as earlier processes left them; what is to be trained, on or again, is queued.

    Args:
        sweep: The sweep. A proposal whose trials are to go on has no longer ended.
        retry_failed: Whether trials that failed, diverged or timed out are to be tried again.
    """
    again = (INTERRUPTED, FAILED, DIVERGED, TIMED_OUT) if retry_failed else (INTERRUPTED,)
    trials = [trial for configuration in sweep.info["configurations"] for trial in trials_of(sweep, configuration)]
    for trial in trials:
        trial.look()
        noted = sweep.notes.get(trial.name)
        if noted and trial.status != COMPLETED:
            trial.status, trial.error = noted["status"], noted["error"]
        elif trial.status in (FAILED, DIVERGED):
            trial.error = trial.last_error()
        if trial.status in again:
            trial.status, trial.error = QUEUED, ""
            sweep.notes.pop(trial.name, None)
            for proposal in sweep.info["proposals"]:
                if proposal["configuration"] == trial.configuration:
                    proposal |= {"value": None, "ended": False}
    return trials


def command(trial: Trial) -> list[str]:
    """The command line that trains a trial: from its start, or from where an earlier process left it."""
    asked = trial.sweep.asked
    words = [sys.executable, "-P", "-m", "ganlab", "run"]  # -P: the working directory is no place for modules
    if trial.run.exists():
        words += ["--resume", str(trial.run)]
    else:
        words += ["--gin", str(trial.sweep.gin(trial.configuration)), "--seed", str(trial.seed)]
        words += ["--runs", str(trial.sweep.path), "--name", f"s{trial.seed}"]
    for name in asked["no_plugin"]:
        words += ["--no-plugin", name]
    if asked["plugin_file"]:
        words += ["--plugin-file", asked["plugin_file"]]
    return words


def environment(threads: int) -> dict[str, str]:
    """What lets trials live side by side: bounded threads, and of a GPU's memory no more than each needs.

    How a sum is split over threads decides its last bits: with one number everywhere, trials repeat theirs.

    Args:
        threads: That TensorFlow uses inside an operation, and between operations.
    """
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
