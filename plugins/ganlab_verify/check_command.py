"""`ganlab plugins check`: runs the conformance suite on components of installed plugins or of a plugin file."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganlab import python_command, start_process
from ganlab.commands import (
    HERE,
    KINDS,
    LOCAL_MODULE,
    UNUSABLE,
    Component,
    Plugins,
    cell,
    plugin_file_in,
    plugin_options,
    printing_to_stderr,
    say,
    table_console,
    use_plugins,
)
from ganlab.errors import MissingDependencyError, PluginError, nearest
from ganlab_verify.testing.check_process import Checked
from ganlab_verify.testing.settings import settings

if TYPE_CHECKING:
    from rich.console import Console

_FAILED = 1


def _shape(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        sizes = tuple(int(part) for part in value.strip("()[] ").rstrip(",").replace("x", ",").split(","))
    except ValueError:
        sizes = ()
    if len(sizes) not in (1, 3) or not all(1 <= size <= 1024 for size in sizes):
        raise click.BadParameter(
            f"{value!r} must be a length, for example 2, or height, width and channels, for example 16,16,3."
        )
    return sizes


@click.command("check")
@click.argument("name", required=False)
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="Make a component with this setting, for example 'constraints.gradient_penalty.weight=1'. May be given "
    "several times.",
)
@click.option(
    "--shape",
    callback=_shape,
    metavar="SHAPE",
    help="The shape of an example for constraints, architectures and evaluators, for example 2 or 16,16,3; by default "
    "the first that the component accepts out of several.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@plugin_options(HERE)
@click.pass_context
def check(
    ctx: click.Context,
    name: str | None,
    params: tuple[str, ...],
    shape: tuple[int, ...] | None,
    as_json: bool,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> None:
    """Tests components against their contract: pure, per example, the same on 1, 2 and 4 replicas, resumed, compiled.

    NAME is a plugin, a distribution or one component such as constraints.r1; without it, the plugin file is checked.
    Each component is made with its default parameters, or those of --param, and tested by its class in ganlab.testing,
    which needs pytest and takes some seconds. Exits with 0 if everything checked passed, and with 1 otherwise or if
    nothing could be checked.

    \b
    ganlab plugins check my-plugin
    ganlab plugins check constraints.gradient_penalty --param weight=1 --shape 16,16,3
    ganlab plugins check --plugin-file mine.py
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    local = plugin_file or plugin_file_in(Path())
    installed = use_plugins(no_plugin, plugin_file=local)
    if name is None and local is None:
        raise click.UsageError(
            "Nothing to check: pass NAME, for example constraints.gradient_penalty, or --plugin-file PATH."
        )
    components, rows = _asked_for(installed, name or LOCAL_MODULE)
    settings(components, params)  # raises if one is invalid
    if components:
        _check_packages()
    asked = {
        "plugin_file": str(local.resolve()) if local else None,
        "no_plugin": list(no_plugin),
        "params": list(params),
        "shape": shape,
    }
    results = _print_as_checked(components, rows, asked, as_json=as_json)
    if as_json:
        passed = _all_passed(results)
        say(json.dumps({"passed": passed, "components": [asdict(row) for row in results]}, indent=2))
    if not _all_passed(results):
        ctx.exit(_FAILED)


def _all_passed(rows: Sequence[Checked]) -> bool:
    statuses = [row.status for row in rows]
    return "passed" in statuses and "failed" not in statuses


def _asked_for(installed: Plugins, name: str) -> tuple[list[Component], list[Checked]]:
    """The components that a name stands for, and rows for those that cannot even be loaded.

    Raises:
        PluginError: The name is unknown.
    """
    kind, dot, own = name.partition(".")
    if dot and kind in KINDS:
        return [installed.component(kind, own)], []
    plugins = [row for row in installed.rows if name in (row.name, row.distribution)]
    if not plugins:
        known = {text for row in installed.rows for text in (row.name, row.distribution)}
        known |= {f"{component.kind}.{component.name}" for component in installed.components.values()}
        here = [f"{kind}.{other}" for kind, other in installed.components if other == name]
        near = f" Did you mean {here[0]!r}?" if here else nearest(name, known)
        raise PluginError(
            f"Unknown plugin, distribution or component {name!r}.{near} 'ganlab plugins' lists them; write a "
            "component with its kind, for example constraints.gradient_penalty."
        )
    rows = [
        Checked(f"plugin {row.name}", "failed", failures={"loading": f"It is {row.status}: {row.reason}"})
        for row in plugins
        if row.status in UNUSABLE
    ]
    rows += [
        Checked(f"plugin {row.name}", "failed", failures={"hooks": "\n".join(row.warnings)})
        for row in plugins
        if row.warnings
    ]
    rows += [
        Checked(f"plugin {row.name}", "not checked", reason="It is disabled.")
        for row in plugins
        if row.status == "disabled"
    ]
    names = {row.name for row in plugins}
    components = [
        component
        for key, component in installed.components.items()
        if component.plugin.name in names
        and key not in installed.clashes  # clashing components are listed by their qualified names
    ]
    for row in plugins:
        rows += _of_hooks(installed, row.name)
    if not components and not rows:
        rows = [Checked(f"plugin {row.name}", "not checked", reason="It offers no components.") for row in plugins]
    return components, rows


def _of_hooks(installed: Plugins, name: str) -> list[Checked]:
    """A row for the hooks of a plugin that offer no component: trackers and commands."""
    from ganlab_verify.testing import hooks

    with printing_to_stderr():
        problems = {test: check() for test, check in hooks.checks(hooks.calls_of(installed, name)).items()}
    failures = {test: problem for test, problem in problems.items() if problem}
    status = "failed" if failures else "passed"
    row = Checked(f"hooks of {name}", status, passed=len(problems) - len(failures), failures=failures)
    return [row] if problems else []


def _check_packages() -> None:
    from ganlab.lazy import require

    if importlib.util.find_spec("pytest") is None:
        raise MissingDependencyError(
            "ganlab plugins check runs the tests of ganlab.testing with pytest, which is not installed. Install it: "
            "pip install pytest"
        )
    if importlib.util.find_spec("tensorflow") is None:
        require("tensorflow")  # raises, and names what to install


def _print_as_checked(
    components: Sequence[Component],
    rows: Sequence[Checked],
    asked: Mapping[str, Any],
    *,
    as_json: bool,
) -> list[Checked]:
    """Waits for the rows and prints each as it comes, unless JSON is requested."""
    from rich.console import Console

    console, errors = table_console(), Console(stderr=True)
    width = max([len(f"{c.kind}.{c.name}") for c in components] + [len(row.component) for row in rows])
    every: list[Checked] = []
    with errors.status("Checking ...") as status:
        begun: set[str] = set()

        def running(component: str, test: str) -> None:
            status.update(f"Checking {component}: {test} ...")
            if not errors.is_terminal and component not in begun:
                say(f"Checking {component} ...", err=True)
            begun.add(component)

        for row in itertools.chain(rows, _checked(components, asked, running)):
            every.append(row)
            if not as_json:
                _print_row(console, row, width)
    return every


def _checked(
    components: Sequence[Component], asked: Mapping[str, Any], running: Callable[[str, str], None]
) -> Iterator[Checked]:
    """Checks components in another process; yields each row when it is done, and calls `running` as tests begin."""
    if not components:
        return
    reading, writing = os.pipe()
    specification = {
        "components": [[component.kind, component.name] for component in components],
        **asked,
        "report": writing,
    }
    command = python_command("-m", "ganlab_verify.testing.check_process", json.dumps(specification))
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    waiting = [f"{component.kind}.{component.name}" for component in components]
    with tempfile.TemporaryFile() as output:
        process = start_process(command, stdout=output, stderr=output, pass_fds=[writing], env=environment)
        os.close(writing)
        try:
            with os.fdopen(reading, encoding="utf-8") as lines:
                for line in lines:
                    given = json.loads(line)
                    if "running" in given:
                        running(given["component"], given["running"])
                        continue
                    row = Checked(**given)
                    waiting.remove(row.component)
                    yield row
        finally:
            if process.poll() is None and waiting:
                process.terminate()
            process.wait()
        output.seek(0)
        last = output.read().decode(errors="replace").strip()[-2000:]
    for number, selector in enumerate(waiting):
        died = f"The process of the check ended (exit status {process.returncode}) before this was done."
        if number == 0:
            yield Checked(selector, "failed", failures={"the process": f"{died} Its last output:\n{last}"})
        else:
            yield Checked(selector, "not checked", reason=died)


def _print_row(console: Console, row: Checked, width: int) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    style = {"passed": "green", "failed": "bold red"}.get(row.status, "yellow")
    table = Table(box=None, show_header=False, pad_edge=False, expand=True)
    table.add_column(width=min(width, 40), overflow="fold")
    table.add_column(width=len("not checked"), no_wrap=True)
    table.add_column(ratio=1)
    table.add_row(cell(row.component), cell(row.status, style=style), cell(_outcome(row)))
    console.print(table)
    for test, message in row.failures.items():
        console.print(Padding(Text.assemble(cell(test, style="bold"), "\n", cell(message)), (0, 0, 0, 2)))
    for reason in dict.fromkeys(row.skipped.values()):
        tests = ", ".join(test for test, given in row.skipped.items() if given == reason)
        console.print(Padding(cell(f"Skipped: {tests}. {reason}", style="dim"), (0, 0, 0, 2)))


def _outcome(row: Checked) -> str:
    if row.reason:
        return row.reason
    counts: list[Any] = [(row.passed, "passed"), (len(row.failures), "failed"), (len(row.skipped), "skipped")]
    text = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{text} ({row.seconds:.0f} s)" if row.seconds else text
