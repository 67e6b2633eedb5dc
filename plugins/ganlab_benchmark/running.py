"""Runs a benchmark, constraint by constraint: cost, tuning, reports, certificates; repeats nothing that is known."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ganlab_sweep import (
    COMPLETED,
    ENDED,
    FAILED,
    Proposed,
    Request,
    Screen,
    Sweep,
    Trial,
    cores,
    created,
    last_value,
    launcher_of,
    run_trials,
    search_of,
    take_up,
)
from ganlab_sweep import (
    Plan as SweepPlan,
)

from ganlab.errors import RunError
from ganlab.files import is_full_disk
from ganlab_benchmark import plan as plans
from ganlab_benchmark.child import middle
from ganlab_benchmark.contestants import Contestant
from ganlab_benchmark.measuring import StoppedError, measured
from ganlab_benchmark.plan import Plan
from ganlab_benchmark.store import Folder
from ganlab_benchmark.suite import CERTIFICATE, Figure, Task

# The longest that a measurement of cost may take, and a certificate beyond its own limit.
_LIMIT = 900.0


@dataclass(frozen=True)
class Runner:
    """Runs what is left of a benchmark in this process.

    Attributes:
        plan: The plan.
        folder: Its folder, which this process has locked.
        jobs: Trials at a time.
        screens: Makes a display for the trials of each sweep; by default there is none.
        retry_failed: Whether to retry trials that failed or diverged, and measurements that failed.
        stopped: Whether to stop; everything is saved then.
        say: Reports what begins.
    """

    plan: Plan
    folder: Folder
    jobs: int
    screens: Callable[[], AbstractContextManager[Screen | None]] = nullcontext
    retry_failed: bool = False
    stopped: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda text: None

    def run(self, done: Callable[[], object] = lambda: None) -> bool:
        """Runs everything that is left.

        Args:
            done: Called after each constraint.

        Returns:
            Whether the benchmark came to its end; False if it was stopped.
        """
        try:
            for contestant in self.plan.contestants:
                if contestant.name not in self.plan.refused:
                    self._constraint(contestant)
                done()
        except StoppedError:
            return False
        return True

    def _constraint(self, contestant: Contestant) -> None:
        training = self.plan.training
        ratio = self._cost(contestant) if training else None
        if ratio is None:
            return
        known = self.folder.known(contestant.name)
        open_ones = {task.name for task in training if not self._choose(contestant, task, ratio)}
        for task in training:
            of = self.plan.suite.tasks[task.tuned_by or task.name]
            chosen = known.get("chosen", {}).get(of.name, 0)
            if chosen is None or of.name in open_ones:  # no setting could be trained, or some are still to be
                continue
            choice = plans.choices(of, contestant)[chosen]
            self._sweep(contestant, task, plans.reports(task, contestant, ratio, choice), task.seeds)
        for task in self.plan.suite.tasks.values():
            if task.kind == CERTIFICATE:
                self._certificates(contestant, task)

    def _choose(self, contestant: Contestant, task: Task, ratio: float) -> bool:
        """Chooses the settings of a task; returns False if a trial for it was interrupted and has to be resumed.

        Once a report has begun with them, settings stay, whatever a retried trial comes to.
        """
        every = plans.tuning(task, contestant, ratio)
        if task.tune is None or not every:
            return True
        trials = self._sweep(contestant, task, every, task.tune.seeds, tuning=True)
        if any(trial.status not in ENDED for trial in trials):
            return False
        known = self.folder.known(contestant.name).setdefault("chosen", {})
        users = [other.name for other in self.plan.suite.training if (other.tuned_by or other.name) == task.name]
        begun = any(self.folder.sweep(contestant.name, user).exists() for user in users)
        if task.name not in known or not begun:
            known[task.name] = chosen_of(trials, [name for name, _ in every], task.figures[task.tune.figure])
            self.folder.save()
        return True

    def _cost(self, contestant: Contestant) -> float | None:
        """The cost that decides the constraint's budgets; None if it cannot be trained."""
        known = self.folder.known(contestant.name)
        cost = known.get("cost")
        if cost is None or (self.retry_failed and cost.get("kind") == FAILED):
            task = self.plan.suite.cost
            self.say(f"{contestant.name}: measuring the cost of an update")
            plain, constrained = plans.plain_and_constrained(task, contestant)
            request = {"what": "cost", "plain": plain, "constrained": constrained, **self._plugins()}
            answer = self._measured({**request, "rounds": task.rounds, "seconds": task.seconds}, _LIMIT)
            ratios = answer.get("ratios")
            cost = {**middle(ratios), "ratios": ratios} if ratios else answer
            known["cost"] = cost
            self.folder.save()
        return plans.rounded(float(cost["ratio"])) if "ratio" in cost else None

    def _sweep(
        self,
        contestant: Contestant,
        task: Task,
        every: Sequence[tuple[str, Mapping[str, str]]],
        seeds: Sequence[int],
        *,
        tuning: bool = False,
    ) -> list[Trial]:
        path = self.folder.sweep(contestant.name, task.name, tuning=tuning)
        if not path.exists():
            self._create(path, task, every, seeds)
        sweep = Sweep(path)
        # Nothing that could execute code is taken from the folder.
        mine = {**self._plugins(), "jobs": self.jobs, "threads": self._threads}
        sweep.request = replace(sweep.request, launcher="local", launcher_options=(), **mine)
        trials = take_up(sweep, retry_failed=self.retry_failed)
        if all(trial.status in ENDED for trial in trials):
            return trials
        self.say(f"{contestant.name}: {task.name}, {'choosing settings' if tuning else 'reporting'}")
        with sweep.locked(), self.screens() as screen:
            trials = run_trials(
                sweep,
                launcher_of(sweep.request),
                search_of(sweep.request),
                screen=screen,
                retry_failed=self.retry_failed,
                stopped=self.stopped,
            )
        if self.stopped():
            raise StoppedError
        return trials

    def _create(
        self, path: Path, task: Task, every: Sequence[tuple[str, Mapping[str, str]]], seeds: Sequence[int]
    ) -> None:
        trained = plans.configurations(task, every)
        recorded = self.folder.asked
        figure = next(iter(task.figures.values()))
        request = Request(
            gin=[str(task.experiment)],
            seeds=list(seeds),
            jobs=self.jobs,
            timeout=recorded["timeout"],
            objective=figure.metric,
            maximize=figure.better == "higher",
            no_plugin=recorded["no_plugin"],
            plugin_file=self.folder.plugin_file,
        )
        proposals = [Proposed(one.settings, one.name) for one in trained]
        launcher, search = launcher_of(request), search_of(request)
        created(SweepPlan(request, launcher, search, proposals, trained, self._threads), path)

    def _certificates(self, contestant: Contestant, task: Task) -> None:
        known = self.folder.known(contestant.name).setdefault("certificates", {})
        path = self.folder.sweep(contestant.name, task.of)
        if not path.exists():
            return
        trials = [trial for trial in take_up(Sweep(path)) if trial.status == COMPLETED]
        certified = known.get(task.name, {})
        left = {trial.name: str(trial.run) for trial in trials if trial.name not in certified}
        if not left:
            return
        self.say(f"{contestant.name}: {task.name}, {len(left)} critics")
        request = {"what": "certificates", "runs": left, "rungs": list(task.rungs), "seconds": task.seconds}
        limit = _LIMIT + len(left) * task.seconds * (2 + len(task.rungs))
        answer = self._measured({**request, **self._plugins()}, limit)
        answers = answer.get("certificates") or {name: {"note": answer["error"]} for name in left}
        known[task.name] = {**certified, **answers}
        self.folder.save()

    def _measured(self, request: Mapping[str, Any], limit: float) -> dict[str, Any]:
        answer = measured(request, threads=self._threads, limit=limit, stopped=self.stopped)
        if is_full_disk(str(answer.get("error", ""))):
            again = f"ganlab benchmark --resume {shlex.quote(str(self.folder.path))}"
            raise RunError(
                f"A measurement failed because the disk is full: {answer['error']}. Free some space and resume: {again}"
            )
        return answer

    @property
    def _threads(self) -> int:
        return min(int(self.folder.asked["threads"]), cores())

    def _plugins(self) -> dict[str, Any]:
        return {"no_plugin": self.folder.asked["no_plugin"], "plugin_file": self.folder.plugin_file}


def chosen_of(trials: Sequence[Trial], names: Sequence[str], figure: Figure) -> int | None:
    """The setting with the best mean figure, the first of equal ones; None if none has been trained.

    A setting counts only if the trials of all its seeds were completed.
    """
    best, chosen = -math.inf, None
    for number, name in enumerate(names):
        value = mean_of(trials, name, figure)
        if value is not None and (score := value if figure.better == "higher" else -value) > best:
            best, chosen = score, number
    return chosen


def mean_of(trials: Sequence[Trial], name: str, figure: Figure) -> float | None:
    """A setting's mean figure over its seeds; None if a trial of it was not completed."""
    values = [value_of(trial, figure) for trial in trials if trial.configuration == name]
    finite = [value for value in values if value is not None]
    if not finite or len(finite) < len(values):
        return None
    try:
        return math.fsum(finite) / len(finite)
    except OverflowError:  # beyond all floats
        return None


def value_of(trial: Trial, figure: Figure) -> float | None:
    """The last value of a figure in a trial; None if it was not completed or the value is not finite."""
    value = last_value(trial.run, figure.metric) if trial.status == COMPLETED else None
    if value is None or not math.isfinite(value):
        return None
    return abs(value) if figure.absolute else value
