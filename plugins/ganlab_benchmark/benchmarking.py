"""`ganlab.benchmark`: plans a benchmark, creates its folder, runs it; and the steps of it, for the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganlab_sweep import cores

from ganlab import __version__
from ganlab.commands import plugin_file_in, several, use_plugins
from ganlab.errors import ConfigError, RunError
from ganlab.files import line, write_text
from ganlab.runs import confirmed, new_path, recorded
from ganlab_benchmark import plan as plans
from ganlab_benchmark.against import held_against, read_reference, reference_files
from ganlab_benchmark.contestants import contestants
from ganlab_benchmark.markdown import markdown
from ganlab_benchmark.plan import Plan, planned
from ganlab_benchmark.report import report
from ganlab_benchmark.results import results
from ganlab_benchmark.running import Runner
from ganlab_benchmark.store import PAGE, RESULTS, TABLES, Folder, as_text
from ganlab_benchmark.suite import find_suite, read_suite


@dataclass(frozen=True)
class Benchmarked:
    """A benchmark that has ended.

    Attributes:
        path: Its folder, with `results.json`, `report.html` and `report.md`.
        content: The content of `results.json`.
    """

    path: Path
    content: Mapping[str, Any]


def benchmark(
    suite: str | os.PathLike[str] = "full",
    *,
    constraints: str | Sequence[str] = (),
    jobs: int | None = None,
    timeout: float | None = None,
    against: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    runs: str | os.PathLike[str] = "runs",
    name: str | None = None,
    no_plugin: str | Sequence[str] = (),
    plugin_file: str | os.PathLike[str] | None = None,
) -> Benchmarked:
    """Trains constraints on a suite of tasks, with the same time for each, and compares them.

    `ganlab benchmark` on the command line, which can also resume a benchmark. Ctrl-C saves the trials and raises.

    Args:
        suite: The name of a shipped suite, `quick` or `full`, or the path of one.
        constraints: Names of constraints; none for every installed one.
        jobs: Number of trials that run at a time; by default this machine's cores.
        timeout: Time limit per trial in seconds.
        against: Files of results to show beside these; none for the shipped ones, `["none"]` for no others at all.
        runs: Folder in which the benchmark's folder is created.
        name: Name of the benchmark's folder; by default the suite's name and the time.
        no_plugin: Names of plugins to leave out.
        plugin_file: A plugin in one file; by default the `ganlab_plugins.py` of the working directory.

    Returns:
        The folder and the results.

    Raises:
        GanlabError: There is a mistake in the suite or the arguments, or the folder cannot be created; nothing is left
            then. A trial that fails does not raise: the results report it.
    """
    plan, request = planned_benchmark(
        os.fspath(several.path(suite, "suite")),
        several.texts(constraints, "constraints"),
        jobs=several.count_or_none(jobs, "jobs"),
        timeout=several.seconds_or_none(timeout, "timeout"),
        against=several.paths(against, "against"),
        no_plugin=several.texts(no_plugin, "no_plugin"),
        plugin_file=several.path(plugin_file, "plugin_file") if plugin_file is not None else None,
    )
    folder = created(request, free_path(several.path(runs, "runs"), name, plan))
    content, _ = run_benchmark(plan, folder, jobs=jobs)
    return Benchmarked(folder.path, content)


def planned_benchmark(
    suite: str,
    constraints: Sequence[str] = (),
    *,
    jobs: int | None = None,
    timeout: float | None = None,
    against: Sequence[str] = (),
    no_plugin: Sequence[str] = (),
    plugin_file: Path | None = None,
) -> tuple[Plan, dict[str, Any]]:
    """Plans a benchmark; everything that can be wrong with it raises here.

    Returns:
        The plan, and the request as benchmark.json keeps it.

    Raises:
        GanlabError: There is a mistake.
    """
    plugins = use_plugins(no_plugin, plugin_file or plugin_file_in(Path()))
    local, content = recorded()
    path = find_suite(suite).resolve()
    plan = planned(read_suite(path), contestants(plugins, constraints))
    at_once = jobs or cores()
    request: dict[str, Any] = {
        "suite": str(path),
        "fingerprint": plans.fingerprint(plan.suite),
        "constraints": [each.name for each in plan.contestants],
        "jobs": at_once,
        "threads": max(1, cores() // at_once),
        "timeout": timeout,
        "against": [str(file.resolve()) for file in reference_files(against, plan.suite.name)],
        "no_plugin": list(no_plugin),
        "plugin_file": local,
        "plugin_content": content,
    }
    mine = {"suite": {"hash": request["fingerprint"]}, "budget": plans.budget(plan.suite), "versions": {}}
    for file in request["against"]:
        held_against(mine, read_reference(Path(file)), Path(file))
    return plan, request


def free_path(runs: Path, name: str | None, plan: Plan) -> Path:
    """The path of a new benchmark, after checking that it can be created.

    Raises:
        RunError: Something exists there, or the name cannot name a folder.
    """
    return new_path(runs, name, "benchmark", f"benchmark-{plan.suite.name}")


def created(request: Mapping[str, Any], path: Path) -> Folder:
    """Creates the folder of a benchmark, whole or not at all.

    Raises:
        RunError: It cannot be created.
    """
    created = datetime.now(UTC).isoformat(timespec="seconds")
    folder = Folder.create(path, {"ganlab": __version__, "created": created, "asked": dict(request)})
    folder.plugin_file = request["plugin_file"]
    return folder


def reopened(path: Path, plugin_file: Path | None = None) -> tuple[Plan, Folder]:
    """A benchmark that was begun.

    Args:
        path: Its folder.
        plugin_file: Its plugin file, which is not executed on the folder's word alone.

    Raises:
        GanlabError: There is none, its suite or its experiments have changed since, or it needs a plugin file.
    """
    folder = Folder(path.resolve())
    request = folder.asked
    local = confirmed("benchmark", request["plugin_file"], request.get("plugin_content"), plugin_file)
    plugins = use_plugins(request["no_plugin"], local)
    folder.plugin_file, _ = recorded()
    suite = read_suite(find_suite(request["suite"]))
    if plans.fingerprint(suite) != request["fingerprint"]:
        raise ConfigError(
            f"{line(suite.path)}: the suite or one of its experiments has changed since the benchmark began, and its "
            "trials would no longer be comparable. Restore the files, or start a new benchmark."
        )
    plan = planned(suite, contestants(plugins, request["constraints"]))
    for contestant in plan.contestants:
        for task in suite.training:
            chosen = folder.known(contestant.name).get("chosen", {}).get(task.name) or 0
            if chosen >= (count := len(plans.choices(task, contestant))):
                raise RunError(
                    f"{line(path)}: benchmark.json has {chosen} as the setting of {contestant.name} in {task.name}, "
                    f"which must be below {count}. Restore it, or start a new benchmark."
                )
    return plan, folder


def run_benchmark(
    plan: Plan, folder: Folder, *, jobs: int | None = None, **options: Any
) -> tuple[dict[str, Any], bool]:
    """Runs what is left of a benchmark, and writes its results after each constraint.

    Args:
        plan: The plan.
        folder: Its folder.
        jobs: Trials at a time; None for as many as its folder has, but no more than this machine's cores.
        **options: Those of `Runner`.

    Returns:
        The results, and whether the benchmark came to its end.
    """
    with folder.locked():
        references = [(Path(file), read_reference(Path(file))) for file in folder.asked["against"]]
        at_once = jobs or min(int(folder.asked["jobs"]), cores())
        ended = Runner(plan, folder, at_once, **options).run(lambda: _write(plan, folder, references))
        return _write(plan, folder, references), ended


def _write(plan: Plan, folder: Folder, references: Sequence[tuple[Path, Mapping[str, Any]]]) -> dict[str, Any]:
    content = results(plan, folder)
    content["references"] = [held_against(content, reference, path) for path, reference in references]
    write_text(folder.path / RESULTS, as_text(content))
    write_text(folder.path / PAGE, report(content))
    write_text(folder.path / TABLES, markdown(content))
    return content
