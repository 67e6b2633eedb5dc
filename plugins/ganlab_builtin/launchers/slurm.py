"""Trials in the queue of a Slurm cluster, through submitit."""

from __future__ import annotations

import contextlib
import logging
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.lazy import require
from ganlab_builtin.launchers.children import safe_path
from ganlab_builtin.launchers.slurm_job import STOP, leave_word, run_in_job

# How often a job hears from its sweep, and how often Slurm is asked about one that is about to end.
_BEAT_SECONDS, _FORCE_SECONDS = 10.0, 5.0

# Shared folders may show a result later than Slurm shows the job's end.
_LAG_SECONDS = 15.0

# Slurm answers within this time, or is down.
_CANCEL_SECONDS = 10.0

# Words of sbatch about a server that is busy or restarts, and the waits before it is asked again: less than jobs wait
# for a word of their sweep. Where Slurm took the job nevertheless, that job finds no command and ends.
_BUSY = ("timed out", "unable to contact", "temporarily", "connection", "zero bytes")
_BUSY_SECONDS = (5.0, 10.0, 20.0)

# The local executor has no "without limit".
_YEAR_MINUTES = 60 * 24 * 365

# Exit statuses of jobs that ended without a result, by Slurm's and the local executor's states; others still run.
_KILLED, _TERMINATED, _TIMED_OUT = 137, 143, 124
_ENDED = {
    "COMPLETED": 1,
    "FINISHED": 1,
    "FAILED": 1,
    "LAUNCH_FAILED": 1,
    "RECONFIG_FAIL": 1,
    "INTERRUPTED": _TERMINATED,
    "CANCELLED": _TERMINATED,
    "PREEMPTED": _TERMINATED,
    "TIMEOUT": _TIMED_OUT,
    "DEADLINE": _TIMED_OUT,
    "OUT_OF_MEMORY": _KILLED,
    "NODE_FAIL": _KILLED,
    "BOOT_FAIL": _KILLED,
}


class Submitit(ganlab.Launcher):
    """Runs every trial as a job in Slurm's queue, by submitit; without a cluster, by its stand-in on this machine.

    Needs `pip install -e '.[slurm]'`, a folder for the sweep that the nodes see too, and Slurm's accounting
    (`sacct`), which reports jobs that ended without a result. Jobs are not requeued: the sweep decides what is started
    again. submitit's own files lie in `submitit/` beside the logs.
    """

    def __init__(
        self,
        *,
        cluster: Literal["slurm", "local"] | None = None,
        partition: str | None = None,
        time_minutes: Annotated[int, Ge(1)] | None = None,
        mem_gb: Annotated[float, Gt(0)] | None = None,
        cpus_per_task: Annotated[int, Ge(1)] | None = None,
        gpus_per_node: Annotated[int, Ge(0)] = 0,
        nodes: Annotated[int, Ge(1)] = 1,
        save_seconds: Annotated[int, Ge(1)] = 120,
        orphan_seconds: Annotated[int, Ge(1)] = 120,
        grace_seconds: Annotated[float, Ge(0)] = 60.0,
        slurm: dict[str, Any] | None = None,
    ) -> None:
        """Chooses what each trial requests from Slurm.

        Args:
            cluster: "slurm", "local" for processes on this machine, or None for Slurm if it is there.
            partition: Slurm's partition; None for the cluster's default, as for the parameters below.
            time_minutes: The time limit of a trial.
            mem_gb: Memory of each node, in GB.
            cpus_per_task: Cores of each node.
            gpus_per_node: GPUs of each node. Without Slurm, 0 hides those of this machine.
            nodes: The number of nodes that a trial trains on, for `strategies.multi_worker`, whose TF_CONFIG is set.
            save_seconds: How long before the time limit a trial is asked to save and end.
            orphan_seconds: How long a trial that hears nothing from its sweep continues before it saves and ends.
            grace_seconds: The time from SIGTERM, by which a trial is asked to save and end, to SIGKILL.
            slurm: Further options of `sbatch`: `{"qos": "low", "exclusive": True}`.
        """
        self._submitit = require("submitit")
        logging.getLogger("submitit").setLevel(logging.ERROR)  # it greets on standard output
        has_slurm = self._submitit.SlurmExecutor.affinity() > 0
        if cluster == "slurm" and not has_slurm:
            raise _refusal("cluster", cluster, "needs srun on PATH: start the sweep on a node of the cluster.")
        self._slurm = has_slurm if cluster is None else cluster == "slurm"
        if nodes > 1 and not self._slurm:
            raise _refusal("nodes", nodes, "must be 1 without Slurm, on this machine.")
        self._orphan_seconds, self.grace_seconds = orphan_seconds, float(grace_seconds)
        if self._slurm:
            self._parameters: dict[str, Any] = {
                "nodes": nodes,
                "gpus_per_node": gpus_per_node or None,
                "partition": partition,
                "time": time_minutes,
                "mem": None if mem_gb is None else f"{round(mem_gb * 1024)}MB",
                "cpus_per_task": cpus_per_task,
                "signal_delay_s": save_seconds,
                "ntasks_per_node": 1,
                # A job that Slurm requeued would begin its command a second time.
                "additional_parameters": {"no-requeue": True, **(slurm or {})},
            }
        else:
            limit = time_minutes or _YEAR_MINUTES
            self._parameters = {"timeout_min": limit, "signal_delay_s": save_seconds, "gpus_per_node": gpus_per_node}

    def start(self, command: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> ganlab.Job:
        """Submits one command to the queue."""
        # Its own folder: the local executor's job numbers are process numbers, which are reused.
        own = log.absolute().parent / "submitit" / f"{log.stem}-{secrets.token_hex(4)}"
        own.mkdir(parents=True)
        leave_word(own, "0")
        words, variables, limits = list(command), dict(environment), (self._orphan_seconds, self.grace_seconds)
        arguments = (words, variables, folder.absolute(), log.absolute(), own, *limits)
        kind = self._submitit.SlurmExecutor if self._slurm else self._submitit.LocalExecutor
        waits = iter(_BUSY_SECONDS)
        while True:
            try:
                executor = kind(folder=own)
                executor.update_parameters(**self._parameters, **({"job_name": log.stem} if self._slurm else {}))
                with _interrupts_held(), safe_path():
                    job = executor.submit(run_in_job, *arguments)
                return _SubmititJob(job, own=own, log=log, slurm=self._slurm)
            except (RuntimeError, OSError) as error:
                answer = _last_line(error)
                wait = next(waits, None) if any(words in answer.lower() for words in _BUSY) else None
                if wait is None:
                    raise ganlab.ConfigError(f"Slurm refuses the job of launchers.submitit: {answer}") from error
            time.sleep(wait)


class _SubmititJob(ganlab.Job):
    def __init__(self, job: Any, *, own: Path, log: Path, slurm: bool) -> None:
        self._job, self._own, self._log, self._slurm = job, own, log, slurm
        self._status: int | None = None
        self._stopped = False
        self._beats = 0
        self._beaten_at = self._asked_at = time.monotonic()
        self._ended_at: float | None = None

    def poll(self) -> int | None:
        if self._status is None:
            self._beat()
            self._status = self._ended()
        return self._status

    def stop(self) -> None:
        if self._status is None and not self._stopped:
            self._stopped = True
            leave_word(self._own, STOP)
            if self._slurm:  # a job that is still queued would never read it
                self._cancel("--state=PENDING")

    def kill(self) -> None:
        if self._status is not None:
            return
        self._stopped = True
        if self._slurm:
            self._cancel()
        else:
            with contextlib.suppress(OSError):
                self._job.cancel()

    def _cancel(self, *options: str) -> None:
        command = ["scancel", *options, str(self._job.job_id)]
        null = subprocess.DEVNULL
        with contextlib.suppress(OSError):
            process = ganlab.start_process(command, stdin=null, stdout=null, stderr=null)
            try:
                process.wait(_CANCEL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _beat(self) -> None:
        now = time.monotonic()
        if not self._stopped and now - self._beaten_at >= _BEAT_SECONDS:
            self._beaten_at, self._beats = now, self._beats + 1
            leave_word(self._own, str(self._beats))

    def _ended(self) -> int | None:
        state = self._state()  # before looking for results: what has ended by now has written its own
        tasks = [self._job.task(number) for number in range(self._job.num_tasks)]
        if all(task.paths.result_pickle.exists() for task in tasks):
            return max((self._result(task) for task in tasks), default=1)
        if state not in _ENDED:
            return None
        now = time.monotonic()
        self._ended_at = self._ended_at or now
        if self._slurm and state == "COMPLETED" and now - self._ended_at < _LAG_SECONDS:
            return None
        self._say(f"The job {self._job.job_id} ended without a result: {state}. More may be in {self._own}.")
        return _ENDED[state]

    def _state(self) -> str:
        # Slurm is asked seldom, to spare it, except about a job that is about to end.
        if self._stopped and time.monotonic() - self._asked_at >= _FORCE_SECONDS:
            self._asked_at = time.monotonic()
            self._job.get_info(mode="force")
        return str(self._job.state).partition(" ")[0].upper()

    def _result(self, task: Any) -> int:
        try:
            return int(task.result())
        except Exception as error:
            self._say(f"The job {self._job.job_id} could not run its command: {error}")
            return 1

    def _say(self, sentence: str) -> None:
        with self._log.open("a", encoding="utf-8") as file:
            file.write(sentence + "\n")


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Context manager: hides Ctrl-C from processes started inside; submitit's local executor would kill its tasks."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _last_line(error: Exception) -> str:
    """The last line that sbatch printed."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _refusal(parameter: str, value: Any, rule: str) -> ganlab.ConfigError:
    return ganlab.ConfigError(f"launchers.submitit.{parameter} = {value!r} {rule}")
