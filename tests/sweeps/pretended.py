"""A launcher that trains nothing: its jobs write, poll by poll, what the runs of a script would leave."""

import itertools
import json
from pathlib import Path

import ganlab
from ganlab.runs import Run, create_run


class Train:
    """One poll: the run reaches a step, and its rows have these values of a metric."""

    def __init__(self, step, **values):
        self.step = step
        self.values = {name.replace("_", "/", 1): value for name, value in values.items()}


class End:
    """The last poll: the process ends, and run.json has this status; none where it made no run."""

    def __init__(self, exit_status=0, status="completed", said=""):
        self.exit_status, self.status, self.said = exit_status, status, said


class PretendLauncher(ganlab.Launcher):
    """Plays scripts.

    Attributes:
        scripts: By trial, a list of what each of its processes does: a list of `Train` and then `End` each.
        started: The trials, in order, one entry a process.
        calls: What `start` was given, by trial, of the last process.
        most: The largest number of jobs at one time.
    """

    def __init__(self, scripts, *, default=None):
        self.scripts = {name: list(script) for name, script in scripts.items()}
        self.default = default
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
        self.stopped = False

    def poll(self):
        if self.stopped:
            self._events = [End(143, "interrupted" if self._run.exists() else None)]
        event = self._events.pop(0)
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

    def _made(self):
        if not self._run.exists():
            create_run(self._run, config="", operative="", info={"status": "running", "step": 0, "steps": 10})
        return Run(self._run)


def _run_of(said):
    return Path(said["--runs"]) / Path(said["--gin"]).stem / said["--name"]
