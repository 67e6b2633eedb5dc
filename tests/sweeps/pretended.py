"""A launcher that trains nothing: its jobs write, poll by poll, the files of scripted runs."""

import fcntl
import itertools
import json
import os
from contextlib import contextmanager
from pathlib import Path

from ganlab_sweep import Configurations, take_up
from ganlab_sweep.engine import Engine
from ganlab_sweep.search_driver import SearchDriver

import ganlab
from ganlab import Choices
from ganlab.run import Run
from ganlab.runs import create_run

WEIGHT = "constraints.gradient_penalty.weight"
SPACE = {WEIGHT: Choices(("1", "2", "3", "4"))}


class Train:
    """One poll: the run reaches a step, and its rows have these values of a metric."""

    def __init__(self, step, **values):
        self.step = step
        self.values = {name.replace("_", "/", 1): value for name, value in values.items()}


class End:
    """The last poll: the process ends, and run.json has this status; None if there was no run."""

    def __init__(self, exit_status=0, status="completed", said=""):
        self.exit_status, self.status, self.said = exit_status, status, said


class PretendLauncher(ganlab.Launcher):
    """Plays scripts, one event at each poll, or a list of them; None is a poll at which nothing happens.

    Attributes:
        scripts: By trial, one script for each of its processes: a list of `Train` and then `End`.
        started: The trials, in order, one entry per process.
        calls: The arguments of `start`, by trial, of the last process.
        deaf: Whether jobs ignore `stop`; "immortal" if `kill` has no effect either.
        most: The largest number of jobs at one time.
    """

    def __init__(self, scripts, *, default=None, deaf=False):
        self.scripts = {name: list(script) for name, script in scripts.items()}
        self.default, self.deaf = default, deaf
        self.started, self.calls, self.resumed = [], {}, []
        self.running, self.most, self.closed = set(), 0, 0

    def start(self, command, *, environment, folder, log):
        said = dict(itertools.pairwise(command))
        run = Path(said["--resume"]) if "--resume" in said else _run_of(said)
        name = f"{run.parent.name}/{run.name}"
        if "--resume" in said:
            self.resumed.append(name)
        self.started.append(name)
        self.calls[name] = {"command": command, "environment": environment, "folder": folder, "log": log}
        self.running.add(name)
        self.most = max(self.most, len(self.running))
        script = self.scripts.get(name)
        events = script.pop(0) if script else list(self.default or [Train(10, critic_loss=1.0), End()])
        return PretendJob(self, name, run, log, list(events))

    def close(self):
        self.closed += 1


class PretendJob(ganlab.Job):
    def __init__(self, launcher, name, run, log, events):
        self._launcher, self._name, self._run, self._log, self._events = launcher, name, run, log, events
        self.stopped = self.killed = False

    def poll(self):
        if self.killed or (self.stopped and not self._launcher.deaf):
            self._events = [End(137 if self.killed else 143, "interrupted" if self._run.exists() else None)]
        event = self._events.pop(0)
        if event is None:
            return None
        if isinstance(event, list):
            self._events = event
            while (exit_status := self.poll()) is None:
                pass
            return exit_status
        if isinstance(event, Train):
            self._made().update(step=event.step, status="running", metrics=event.values)
            metrics = {name: {"reduced": value, "replicas": [value]} for name, value in event.values.items()}
            with (self._run / "metrics.jsonl").open("a") as file:
                file.write(json.dumps({"step": event.step, "metrics": metrics}) + "\n")
            return None
        if event.status is not None:
            self._made().update(status=event.status, wall_seconds=4.0)
        if event.said:
            with self._log.open("a") as log:
                log.write(event.said + "\n")
        self._launcher.running.discard(self._name)
        return event.exit_status

    def stop(self):
        self.stopped = True

    def kill(self):
        self.killed = self._launcher.deaf != "immortal"

    def _made(self):
        if not self._run.exists():
            create_run(self._run, config="", operative="", info={"status": "running", "step": 0, "steps": 10})
        return Run(self._run)


def _run_of(said):
    return Path(said["--runs"]) / Path(said["--gin"]).stem / said["--name"]


class Seen:
    """A screen that remembers every change of status."""

    def __init__(self):
        self.changes = []

    def show(self, trials):
        now = {trial.name: trial.status for trial in trials}
        if not self.changes or self.changes[-1] != now:
            self.changes.append(now)


class World:
    """One process's work on a sweep, with a clock that advances only while it sleeps."""

    def __init__(self, sweep, launcher, *, search=None, retry_failed=False, stop_at=None, during=None):
        self.now, self.screen, self.launcher = 0.0, Seen(), launcher
        self._stop_at, self._during = stop_at, during
        trials = take_up(sweep, retry_failed=retry_failed)
        configurations = Configurations(["quickstart"], [], list(SPACE), sweep.configurations())
        self.engine = Engine(
            sweep,
            trials,
            SearchDriver(sweep, search, SPACE, configurations) if search else SearchDriver(sweep),
            launcher,
            screen=self.screen,
            stopped=lambda: self._stop_at is not None and self.now >= self._stop_at,
            clock=lambda: self.now,
            wait=self._sleep,
        )

    def _sleep(self, seconds):
        self.now += seconds
        assert self.now < 1000, "it never ends"
        if self._during:
            self._during(self)

    def run(self):
        self.engine.run()
        return {trial.name: trial.status for trial in self.engine.trials}


def statuses(status, *names):
    return dict.fromkeys(names or ("a/s0", "a/s1", "b/s0", "b/s1"), status)


@contextmanager
def holding(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield lambda: fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
