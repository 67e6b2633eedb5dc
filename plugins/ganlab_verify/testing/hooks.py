"""Conformance of plugins without components: trackers, and commands."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ganlab import Record, Run
from ganlab.commands import Plugin, Plugins, command_names, reason_of
from ganlab.errors import MissingDependencyError
from ganlab.files import scratch_folder

RUN_HOOKS = ("ganlab_run_start", "ganlab_metrics", "ganlab_run_end")
COMMAND_HOOK = "ganlab_register_commands"

Calls = Mapping[str, Callable[..., Any]]


def checks(calls: Calls) -> dict[str, Callable[[], str]]:
    """The checks of a plugin's hooks other than components, by name; each returns a message, empty if it passes.

    Args:
        calls: By hook, a function that calls it with the hook's arguments.
    """
    tests: dict[str, Callable[[], str]] = {}
    if any(hook in calls for hook in RUN_HOOKS):
        tests["test_a_run_is_followed_to_its_end"] = lambda: _followed(calls, ["completed"])
        tests["test_a_run_may_start_again"] = lambda: _followed(calls, ["interrupted", "completed"])
    if COMMAND_HOOK in calls:
        tests["test_commands_have_names_of_their_own"] = lambda: _clashes(calls)
        tests["test_commands_have_help"] = lambda: _helpless(calls)
    return tests


def calls_of(plugins: Plugins, name: str) -> Calls:
    """The functions that one of the plugins implements for these hooks."""
    return {hook: call for hook in (*RUN_HOOKS, COMMAND_HOOK) for plugin, call in plugins.calls(hook) if plugin == name}


def _followed(calls: Calls, endings: list[str]) -> str:
    with scratch_folder("ganlab-conformance-") as folder:
        path = Path(folder)
        info = {"status": "running", "step": 0, "steps": 20, "seed": 0, "settings": {"experiment.steps": 20}}
        (path / "run.json").write_text(json.dumps(info), encoding="utf-8")
        for name, text in (("config.gin", "experiment.steps = 20\n"), ("metrics.jsonl", "")):
            (path / name).write_text(text, encoding="utf-8")
        before = {file.name: file.read_bytes() for file in path.iterdir()}
        run = Run(path)
        rows = [
            [Record(step, "critic/loss", 0.5, (0.4, 0.6)), Record(step, "evaluation/a/b", 1.0)] for step in (10, 20)
        ]
        for ending in endings:
            events: list[tuple[str, dict[str, Any]]] = [("ganlab_run_start", {})]
            events += [("ganlab_metrics", {"records": row}) for row in rows]
            for hook, arguments in [*events, ("ganlab_run_end", {"status": ending})]:
                try:
                    if hook in calls:
                        calls[hook](run=run, **arguments)
                except (Exception, SystemExit) as error:
                    return f"{hook} raises {reason_of(error)}"
        changed = [name for name, data in before.items() if not _is(path / name, data)]
    return f"A hook changes {', '.join(changed)} of the run. Write to files with other names." if changed else ""


def _is(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def _added(calls: Calls) -> dict[str, click.Command]:
    group = click.Group("ganlab")
    calls[COMMAND_HOOK](cli=group)
    return dict(group.commands)


def _clashes(calls: Calls) -> str:
    try:
        added = _added(calls)
    except (Exception, SystemExit) as error:
        return f"{COMMAND_HOOK} raises {reason_of(error)}"
    if not added:
        return f"{COMMAND_HOOK} adds no command. Call cli.add_command(mine)."
    taken = [name for name in added if name in command_names()]
    return f"'ganlab {taken[0]}' is ganlab's own command: choose another name." if taken else ""


def _helpless(calls: Calls) -> str:
    from click.testing import CliRunner

    for name, command in _added(calls).items():
        if not (command.help or "").strip():
            return f"The command {name!r} has no help: write a docstring, which 'ganlab --help' shows."
        done = CliRunner().invoke(command, ["--help"])
        if done.exit_code:
            return f"'ganlab {name} --help' ends with exit code {done.exit_code}."
    return ""


class HookConformance:
    """The base of the classes for plugins without components."""

    def make(self) -> Any:
        """Returns the plugin's module or object. Authors write this method."""
        raise NotImplementedError(f"{type(self).__name__} needs a method make(self) that returns the plugin's module.")

    def _check(self, test: str) -> None:
        try:
            import pytest
        except ImportError:
            raise MissingDependencyError("ganlab.testing needs pytest. Install it: pip install pytest") from None
        plugins = Plugins()
        plugins.add(Plugin("conformance", "ganlab.testing", ""), self.make)
        (row,) = plugins.rows
        if row.status != "loaded":
            pytest.fail(f"As a plugin it would be {row.status}: {row.reason}", pytrace=False)
        made = checks(calls_of(plugins, "conformance"))
        if test not in made:
            pytest.fail(f"The plugin has no hook for this: {inspect.getdoc(type(self))}", pytrace=False)
        if problem := made[test]():
            pytest.fail(problem, pytrace=False)


class TrackerConformance(HookConformance):
    """Checks the hooks of a tracker against the contract, with a run that is not trained.

    class TestMine(TrackerConformance):
        def make(self):
            return my_module
    """

    def test_a_run_is_followed_to_its_end(self) -> None:
        """The tracker takes start, rows and end, and leaves the run's own files unchanged."""
        self._check("test_a_run_is_followed_to_its_end")

    def test_a_run_may_start_again(self) -> None:
        """An interrupted run may start again, and its rows are sent again."""
        self._check("test_a_run_may_start_again")


class CommandConformance(HookConformance):
    """Checks the commands of a plugin against the contract.

    class TestMine(CommandConformance):
        def make(self):
            return my_module
    """

    def test_commands_have_names_of_their_own(self) -> None:
        """There is at least one, and none has the name of one of ganlab's own."""
        self._check("test_commands_have_names_of_their_own")

    def test_commands_have_help(self) -> None:
        """Each has a help text, and shows it."""
        self._check("test_commands_have_help")
