"""One run of a sweep: its process, and its state as read from its directory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganlab import Job, python_command
from ganlab.errors import RunError
from ganlab.files import is_full, is_full_disk, open_inside
from ganlab.runs import INFO, METRICS, Change, changes_of, complaints_of, holder, read_fields, warnings_of
from ganlab_sweep.metric_follower import MetricFollower, last_value
from ganlab_sweep.request import Request
from ganlab_sweep.store import Sweep

QUEUED, WAITING, RUNNING = "queued", "waiting", "running"
COMPLETED, INTERRUPTED, PRUNED = "completed", "interrupted", "pruned"
FAILED, DIVERGED, TIMED_OUT = "failed", "diverged", "timed out"
# Statuses that leave a sweep nothing to do, unless failed trials are to be retried.
ENDED = (COMPLETED, FAILED, DIVERGED, TIMED_OUT, PRUNED)

# Statuses that run.json has of a run that is not running.
_OF_RUNS = (COMPLETED, INTERRUPTED, FAILED, DIVERGED)

# The metric that is shown if the sweep has no objective.
_WORTH_A_GLANCE = "critic/loss"
_LOG_BYTES = 1 << 16
# Errors of a machine that others use, too, besides that of a full disk.
_NO_ROOM = ("There is not enough memory", "The system does not let this process start", "The system lets no further")
# The prefix of every error that the command line prints.
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
        steps: Generator updates of the whole run; None while that is not known.
        seconds: Training time, in all of its processes.
        value: The last value of the metric.
        error: Why it failed, or which process it waits for.
        health: Complaints of its run's last health check; None before the first check.
        changes: Changes that were made to its run midway, by hand.
        warnings: Warnings of its run.
        job: Its process.
        stopped_at: When the process was asked to end; None if it was not.
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
        self.trail = MetricFollower(self.run, self.tag)
        self._began, self._before, self._log_begins = 0.0, 0.0, 0
        self._written: tuple[int, ...] = ()
        self._written_at = 0.0

    @property
    def name(self) -> str:
        """Its path in the sweep's folder: `gradient_penalty.weight=10/s0`."""
        return f"{self.configuration}/s{self.seed}"

    @property
    def run(self) -> Path:
        """Its run directory, which need not exist."""
        return self.sweep.run(self.configuration, self.seed)

    @property
    def log(self) -> Path:
        """The file with what its processes printed."""
        return self.sweep.log(self.configuration, self.seed)

    def held(self) -> str | None:
        """The process that trains it, perhaps started by an earlier process of the sweep; None if there is none."""
        return holder(self.run, wait=False) if self.run.exists() else None

    def wait(self, who: str, now: float) -> float:
        """Records, at a time in seconds, that it waits for a process; returns for how long that has written nothing."""
        written = tuple(_written(self.run / name) for name in (INFO, METRICS))
        if self.status != WAITING or written != self._written:
            self._written, self._written_at = written, now
        self.status, self.error = WAITING, f"held by {who}"
        return now - self._written_at

    def begin(self, job: Job, now: float, log_begins: int) -> None:
        """Records that a process was started for it.

        Args:
            job: The process.
            now: The time in seconds.
            log_begins: The size of the log before.
        """
        self.job, self.status, self.error, self.stopped_at = job, RUNNING, "", None
        self._began, self._before, self._log_begins = now, self.seconds, log_begins

    def follow(self, now: float) -> bool:
        """Updates step, value and time of a running trial, in seconds; returns whether it has logged since."""
        self.seconds = self._before + now - self._began
        has_logged = self.trail.follow()
        if has_logged and self.trail.values:
            self.value = self.trail.values[max(self.trail.values)]
        self.step = self.trail.step or self.step
        if self.steps is None:
            self.steps = self._info().get("steps")
        return has_logged

    def end(self, exit_status: int) -> None:
        """Records the end of its process, and reads the state of the run directory.

        Args:
            exit_status: The exit status of the process; 128 plus the signal's number if a signal ended it.
        """
        self.job = None
        self.look()
        if self.status == QUEUED:  # it left no run
            self.status = INTERRUPTED if exit_status > 128 else FAILED
        elif self.status == INTERRUPTED and exit_status in (0, 2):  # 2: it refused to resume the run
            self.status = FAILED
        if self.status != COMPLETED:
            # A process that ends as if all were well has printed no error.
            error = "" if self.status == FAILED and exit_status == 0 else self.last_error()
            self.error = error or f"its process ended with exit status {exit_status}"

    def look(self) -> None:
        """Reads status, step, time and value from the run directory, if there is one."""
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
            info, problems = read_fields(self.run)
        except RunError:
            return {}
        return {} if problems else info

    def lacks_space(self) -> bool:
        """Whether it failed because the disk is full: its last error, or the disk says so."""
        return is_full_disk(self.error) or is_full_disk(str(self._info().get("error"))) or is_full(self.sweep.path)

    def lacked_room(self) -> bool:
        """Whether it failed for want of disk or memory, no fault of its own; whether there is enough now shows then."""
        errors = (self.error, str(self._info().get("error")))
        return any(is_full_disk(error) or any(words in error for words in _NO_ROOM) for error in errors)

    def last_error(self) -> str:
        """The last error that its last process printed, without the prefix; empty if it printed none."""
        try:
            with open_inside(self.sweep.path, self.log.relative_to(self.sweep.path)) as file:
                size = file.seek(0, 2)
                file.seek(max(self._log_begins, size - _LOG_BYTES))
                text = _ESCAPE.sub("", file.read(_LOG_BYTES).decode(errors="replace"))
        except (OSError, RunError):
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        errors = [line.removeprefix(_ERROR) for line in lines if line.startswith(_ERROR)]
        # Without such a line the last one says most, for example that of a traceback.
        return errors[-1] if errors else lines[-1] if lines and self.status == FAILED else ""


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def trials_of(sweep: Sweep, configuration: str) -> list[Trial]:
    """A configuration's trials, one for each seed, before their run directories are read."""
    tag = sweep.request.objective or _WORTH_A_GLANCE
    return [Trial(sweep, configuration, seed, tag) for seed in sweep.request.seeds]


def take_up(sweep: Sweep, *, retry_failed: bool = False) -> list[Trial]:
    """All trials of a sweep as earlier processes left them; those to be resumed or retried are queued.

    Args:
        sweep: The sweep. The proposal of a queued trial is marked as not ended.
        retry_failed: Whether to retry trials that failed, diverged or timed out.
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
        if trial.status in again or (trial.status == FAILED and trial.lacked_room()):
            trial.status, trial.error = QUEUED, ""
            sweep.notes.pop(trial.name, None)
            for proposal in sweep.proposals:
                if proposal.configuration == trial.configuration:
                    proposal.value, proposal.ended = None, False
    return trials


def command(trial: Trial) -> list[str]:
    """The command line that trains a trial, or resumes it if its run directory exists."""
    request = trial.sweep.request
    words = python_command("-m", "ganlab", "run")
    if trial.run.exists():
        words += ["--resume", str(trial.run)]
    else:
        words += ["--gin", str(trial.sweep.gin(trial.configuration)), "--seed", str(trial.seed)]
        words += ["--runs", str(trial.sweep.path), "--name", f"s{trial.seed}"]
    return words + plugin_options(request)


def plugin_options(request: Request) -> list[str]:
    """The options that name the plugins of a sweep."""
    words = [word for name in request.no_plugin for word in ("--no-plugin", name)]
    return [*words, "--plugin-file", request.plugin_file] if request.plugin_file else words


def environment(threads: int) -> dict[str, str]:
    """Environment variables for trials side by side: limited threads, and no more GPU memory than each needs.

    How a sum is split over threads decides its last bits: with one number everywhere, trials are reproducible.

    Args:
        threads: Threads that TensorFlow uses inside an operation, and between operations.
    """
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    return {**dict.fromkeys(names, str(threads)), "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
