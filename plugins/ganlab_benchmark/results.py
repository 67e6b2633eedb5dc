"""The results of a benchmark, as results.json has them: collected from the sweeps' runs, finished or not."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ganlab_sweep import COMPLETED, DIVERGED, ENDED, Sweep, Trial, cores, take_up

from ganlab import __version__
from ganlab.runs import RunDirectory, limits_of, versions
from ganlab_benchmark import plan as plans
from ganlab_benchmark.contestants import Contestant
from ganlab_benchmark.plan import Plan
from ganlab_benchmark.running import mean_of, value_of
from ganlab_benchmark.statistics import mean_of as estimate
from ganlab_benchmark.store import Folder
from ganlab_benchmark.suite import CERTIFICATE, COST, SENSITIVITY, TRAINING, Figure, Task

FORMAT = 1
_PACKAGES = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "keras", "numpy")
# Statuses of a constraint in a task.
STATUSES = ("completed", "partial", "failed", "refused", "pending", "none", "skipped")
DONE, PARTIAL, FAILED, REFUSED, PENDING, NONE, SKIPPED = STATUSES


def column(figure: str, report: str | None = None) -> str:
    """The key of a figure in results: its name, with the report's where each report has its own."""
    return figure if report is None else f"{figure} @ {report}"


def columns(task: Task) -> list[tuple[str, Figure, str | None]]:
    """The figures that a task has in results: key, figure, and the report or None for all of them."""
    if not task.split:
        return [(column(name), figure, None) for name, figure in task.figures.items()]
    return [
        (column(name, report.name), figure, report.name)
        for name, figure in task.figures.items()
        for report in task.reports
        if not figure.only or report.name in figure.only
    ]


def results(plan: Plan, folder: Folder) -> dict[str, Any]:
    """Everything that is known of a benchmark so far."""
    suite = plan.suite
    constraints = {each.name: _constraint(plan, folder, each) for each in plan.contestants}
    return {
        "format": FORMAT,
        "suite": {
            "name": suite.name,
            "title": suite.title,
            "about": suite.about,
            "hash": folder.asked["fingerprint"],
        },
        "budget": plans.budget(suite),
        "versions": {"ganlab": __version__, "python": platform.python_version(), **versions(_PACKAGES)},
        "machine": {"platform": platform.platform(), "cores": cores(), "threads": folder.asked["threads"]},
        "created": folder.info["created"],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": all(
            task["status"] != PENDING for constraint in constraints.values() for task in constraint["tasks"].values()
        ),
        "tasks": {name: _task(task) for name, task in suite.tasks.items()},
        "constraints": constraints,
    }


def _task(task: Task) -> dict[str, Any]:
    return {
        "kind": task.kind,
        "title": task.title,
        "about": task.about,
        "columns": {
            key: {
                "label": figure.label if report is None else f"{figure.label}, {report}",
                "about": figure.about,
                "better": figure.better,
            }
            for key, figure, report in columns(task)
        },
    }


def _constraint(plan: Plan, folder: Folder, contestant: Contestant) -> dict[str, Any]:
    known = folder.known(contestant.name)
    cost = known.get("cost")
    reason, kind = plan.refused.get(contestant.name, ""), REFUSED
    if cost and "error" in cost:
        reason, kind = cost["error"], cost.get("kind", FAILED)
    ratio = plans.rounded(cost["ratio"]) if cost and "ratio" in cost else None
    return {
        "origin": contestant.origin,
        "ratio": ratio,
        "steps": {task.name: plans.steps_of(task.steps, ratio) for task in plan.suite.training} if ratio else {},
        "settings": _settings(plan, contestant, known),
        "tasks": {
            name: _outcome(SKIPPED, plan.skipped[name]) if one["status"] == PENDING and name in plan.skipped else one
            for name, task in plan.suite.tasks.items()
            for one in [_outcome(kind, reason) if reason else _OF_KIND[task.kind](plan, folder, contestant, task)]
        },
    }


def _outcome(status: str, reason: str = "", figures: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"status": status, "reason": reason, "figures": dict(figures or {}), **more}


def _settings(plan: Plan, contestant: Contestant, known: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    settings = {}
    for task in plan.suite.training:
        chosen = known.get("chosen", {}).get(task.name)
        if chosen is not None:
            settings[task.name] = plans.choices(task, contestant)[chosen]
    return settings


def _cost(plan: Plan, folder: Folder, contestant: Contestant, task: Task) -> dict[str, Any]:
    cost = folder.known(contestant.name).get("cost")
    if cost is None:
        return _outcome(PENDING)
    (key,) = task.figures
    figure = {"mean": cost["ratio"], "low": cost["low"], "high": cost["high"], "n": len(cost["ratios"])}
    return _outcome(DONE, figures={key: {**figure, "interval": "quartiles"}})


def _trials(folder: Folder, contestant: Contestant, task: str, *, tuning: bool = False) -> list[Trial] | None:
    path = folder.sweep(contestant.name, task, tuning=tuning)
    return take_up(Sweep(path)) if path.exists() else None


def _trained(plan: Plan, folder: Folder, contestant: Contestant, task: Task) -> dict[str, Any]:
    trials = _trials(folder, contestant, task.name)
    if trials is None:
        of = task.tuned_by or task.name
        if folder.known(contestant.name).get("chosen", {}).get(of, 0) is None:
            return _outcome(FAILED, f"no setting of {of} could be trained")
        return _outcome(PENDING)
    names = {plans.folder_of(number, report.name): report.name for number, report in enumerate(task.reports)}
    values: list[dict[str, Any]] = [
        {
            "report": names.get(trial.configuration, trial.configuration),
            "seed": trial.seed,
            "status": trial.status,
            "error": trial.error,
            "figures": {key: value_of(trial, figure) for key, figure in task.figures.items()},
        }
        for trial in trials
    ]
    figures = {}
    infos = [RunDirectory(trial.run).info for trial in trials if trial.status == COMPLETED]
    for key, figure, report in columns(task):
        numbers = [
            (value["report"], value["figures"][figure.name])
            for value in values
            if report is None or value["report"] == report
            if value["figures"][figure.name] is not None
        ]
        if (summary := _over_seeds(numbers, _limits(infos, figure))) is not None:
            figures[key] = summary
    return _outcome(*_status(trials), figures, trials=values)


def _limits(infos: Sequence[Mapping[str, Any]], figure: Figure) -> tuple[float, float]:
    """The least and the largest value that a figure can have, by the run.json of its trials."""
    pairs = [(0.0, math.inf) if figure.absolute else limits_of(info, figure.metric) for info in infos]
    return min((low for low, _ in pairs), default=-math.inf), max((high for _, high in pairs), default=math.inf)


def _over_seeds(
    values: Iterable[tuple[str, float]], limits: tuple[float, float] = (-math.inf, math.inf)
) -> dict[str, Any] | None:
    """The mean of values, each with the problem that it is from, and its interval over the seeds of each problem.

    The interval ends at the limits. Of two seeds of one problem, or where seeds are equal, it is their range instead.
    """
    groups: dict[str, list[float]] = {}
    for problem, value in values:
        groups.setdefault(problem, []).append(value)
    estimated = estimate(groups.values())
    if estimated is None or estimated.low is None or estimated.high is None:
        return None if estimated is None else {**asdict(estimated), "interval": None}
    numbers = [value for group in groups.values() for value in group]
    if estimated.low == estimated.high:
        return {**asdict(estimated), "interval": "range"}
    if len(numbers) == 2:
        return {**asdict(estimated), "low": min(numbers), "high": max(numbers), "interval": "range"}
    low, high = max(estimated.low, min(limits[0], estimated.mean)), min(estimated.high, max(limits[1], estimated.mean))
    kind = "student" if (low, high) == (estimated.low, estimated.high) else "limited"
    return {**asdict(estimated), "low": low, "high": high, "interval": kind}


def _status(trials: Sequence[Trial]) -> tuple[str, str]:
    """The status of a constraint in a task, with the reason of the first trial that was not completed."""
    if any(trial.status not in ENDED for trial in trials):
        return PENDING, ""
    bad = [trial for trial in trials if trial.status != COMPLETED]
    if not bad:
        return DONE, ""
    kinds = {trial.status for trial in bad}
    outcome = "diverged" if kinds == {DIVERGED} else "were not completed"
    reason = f"{len(bad)} of {len(trials)} trials {outcome}: {bad[0].error or bad[0].status}"
    return (PARTIAL if len(bad) < len(trials) else FAILED), reason


def _sensitivity(plan: Plan, folder: Folder, contestant: Contestant, task: Task) -> dict[str, Any]:
    of = plan.suite.tasks[task.of]
    if not plans.tuning(of, contestant, 1):
        return _outcome(NONE, f"it has only one setting in {of.name}")
    trials = _trials(folder, contestant, of.name, tuning=True)
    if trials is None or any(trial.status not in ENDED for trial in trials):
        return _outcome(PENDING)
    assert of.tune is not None
    figure = of.figures[of.tune.figure]
    means = [mean_of(trials, name, figure) for name in dict.fromkeys(trial.configuration for trial in trials)]
    count = reaching(means, figure.better, task.within)
    if count is None:
        return _outcome(FAILED, f"no setting of {of.name} could be trained")
    (key,) = task.figures
    share = {"mean": count / len(means), "low": None, "high": None, "n": len(means), "interval": None}
    return _outcome(DONE, figures={key: share})


def reaching(means: Iterable[float | None], better: str, within: float) -> int | None:
    """How many settings come to a part of the best one's figure; None if no setting was trained.

    Args:
        means: The figure of each setting; None where it was not trained.
        better: `higher` or `lower`.
        within: The part: with `lower`, a figure may be as much as the best one over it. Of a best figure that is
            negative where higher is better, only the best one itself reaches it.
    """
    trained = [value for value in means if value is not None]
    if not trained:
        return None
    if better == "higher":
        best = max(trained)
        return sum(value >= (within * best if best > 0 else best) for value in trained)
    best = min(trained)
    return sum(value <= (best / within if best > 0 else best) for value in trained)


def _certificate(plan: Plan, folder: Folder, contestant: Contestant, task: Task) -> dict[str, Any]:
    known = folder.known(contestant.name)
    certificates = known.get("certificates", {}).get(task.name)
    if certificates is None:
        trials = _trials(folder, contestant, task.of)
        if trials is not None and all(trial.status in ENDED for trial in trials):
            trained = any(trial.status == COMPLETED for trial in trials)
            return _outcome(PENDING) if trained else _outcome(FAILED, f"no trial of {task.of} was completed")
        if known.get("chosen", {}).get(task.of, 0) is None:
            return _outcome(FAILED, f"no setting of {task.of} could be trained")
        return _outcome(PENDING)
    ratios = [
        (name.rpartition("/")[0], one["upper"] / one["lower"])
        for name, one in certificates.items()
        if one.get("upper") and one.get("lower")
    ]
    notes = [one["note"] for one in certificates.values() if one.get("note")]
    ratio = _over_seeds(ratios, (1.0, math.inf))
    if ratio is None:
        return _outcome(NONE, notes[0] if notes else "no certificate suits these critics")
    (key,) = task.figures
    status = DONE if len(ratios) == len(certificates) else PARTIAL
    reason = "" if status == DONE else f"{len(certificates) - len(ratios)} of {len(certificates)} critics have none"
    return _outcome(status, reason, {key: ratio})


_OF_KIND = {TRAINING: _trained, COST: _cost, SENSITIVITY: _sensitivity, CERTIFICATE: _certificate}
