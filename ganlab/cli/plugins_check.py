"""`ganlab plugins check`: the conformance suite on components of plugins that are installed, or in one file."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganlab.cli.options import HERE, plugin_file_in, plugin_options, use_plugins
from ganlab.cli.tables import table_console
from ganlab.errors import MissingDependencyError, PluginError, nearest
from ganlab.plugins import KINDS, LOCAL_MODULE, UNUSABLE, Component, Plugins
from ganlab.testing.checking import Checked

if TYPE_CHECKING:
    from rich.console import Console

_FAILED = 1


@click.command("check")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@plugin_options(HERE)
@click.pass_context
def check(
    ctx: click.Context, name: str | None, as_json: bool, no_plugin: tuple[str, ...], plugin_file: Path | None
) -> None:
    """Holds components to the contract: pure, per example, the same on 1, 2 and 4 replicas, resumed, compiled.

    NAME is a plugin, a distribution or one component, such as constraints.r1; left out, it is the plugin file. Each
    component is made with its default parameters and tested by its class in ganlab.testing, which needs pytest; some
    seconds each. Exits with 0 if all that was checked passed, and with 1 otherwise, or if nothing could be checked.

    \b
    ganlab plugins check my-plugin
    ganlab plugins check constraints.gradient_penalty
    ganlab plugins check --plugin-file mine.py
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    local = plugin_file or plugin_file_in(Path())
    found = use_plugins(no_plugin, plugin_file=local)
    if name is None and local is None:
        raise click.UsageError("Say what to check: NAME, such as constraints.gradient_penalty, or --plugin-file PATH.")
    components, rows = _asked_for(found, name or LOCAL_MODULE)
    _check_packages()
    shown = _shown(components, rows, local, no_plugin, as_json=as_json)
    if as_json:
        passed = _all_passed(shown)
        click.echo(json.dumps({"passed": passed, "components": [asdict(row) for row in shown]}, indent=2))
    if not _all_passed(shown):
        ctx.exit(_FAILED)


def _all_passed(rows: Sequence[Checked]) -> bool:
    statuses = [row.status for row in rows]
    return "passed" in statuses and "failed" not in statuses


def _asked_for(found: Plugins, name: str) -> tuple[list[Component], list[Checked]]:
    """The components that a name stands for, and rows for what cannot even be loaded.

    Raises:
        PluginError: The name stands for nothing.
    """
    kind, dot, own = name.partition(".")
    if dot and kind in KINDS:
        return [found.component(kind, own)], []
    plugins = [row for row in found.rows if name in (row.name, row.distribution)]
    if not plugins:
        known = {text for row in found.rows for text in (row.name, row.distribution)}
        known |= {f"{component.kind}.{component.name}" for component in found.components.values()}
        here = [f"{kind}.{other}" for kind, other in found.components if other == name]
        near = f" Did you mean {here[0]!r}?" if here else nearest(name, known)
        raise PluginError(
            f"There is no plugin, distribution or component {name!r}.{near} 'ganlab plugins' lists them; a component "
            "is named with its kind, such as constraints.gradient_penalty."
        )
    rows = [
        Checked(f"plugin {row.name}", "failed", failures={"loading": f"It is {row.status}: {row.reason}"})
        for row in plugins
        if row.status in UNUSABLE
    ]
    rows += [
        Checked(f"plugin {row.name}", "not checked", reason="It is disabled.")
        for row in plugins
        if row.status == "disabled"
    ]
    names = {row.name for row in plugins}
    components = [component for component in found.components.values() if component.plugin.name in names]
    if not components and not rows:
        rows = [Checked(f"plugin {row.name}", "not checked", reason="It offers no components.") for row in plugins]
    return components, rows


def _check_packages() -> None:
    from ganlab.lazy import require

    if importlib.util.find_spec("pytest") is None:
        raise MissingDependencyError(
            "ganlab plugins check runs the tests of ganlab.testing with pytest, which is not installed. Install it: "
            "pip install pytest"
        )
    if importlib.util.find_spec("tensorflow") is None:
        require("tensorflow")  # which says what to install


def _shown(
    components: Sequence[Component],
    rows: Sequence[Checked],
    local: Path | None,
    no_plugin: Sequence[str],
    *,
    as_json: bool,
) -> list[Checked]:
    """Waits for the rows and shows them on the way, unless they are wanted as JSON."""
    from rich.console import Console

    console, errors = table_console(), Console(stderr=True)
    width = max([len(f"{c.kind}.{c.name}") for c in components] + [len(row.component) for row in rows])
    every: list[Checked] = []
    with errors.status("Checking ..."):
        for row in [*rows, *_checked(components, local, no_plugin)]:
            every.append(row)
            if not as_json:
                _print_row(console, row, width)
    return every


def _checked(components: Sequence[Component], local: Path | None, no_plugin: Sequence[str]) -> Iterator[Checked]:
    """Checks components in another process; yields each as it is done."""
    if not components:
        return
    reading, writing = os.pipe()
    specification = {
        "components": [[component.kind, component.name] for component in components],
        "plugin_file": str(local.resolve()) if local else None,
        "no_plugin": list(no_plugin),
        "report": writing,
    }
    # -P: the working directory is no place for modules, as under the command itself.
    command = [sys.executable, "-P", "-m", "ganlab.testing.checking", json.dumps(specification)]
    environment = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    waiting = [f"{component.kind}.{component.name}" for component in components]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, pass_fds=[writing], env=environment)
        os.close(writing)
        try:
            with os.fdopen(reading, encoding="utf-8") as lines:
                for line in lines:
                    row = Checked(**json.loads(line))
                    waiting.remove(row.component)
                    yield row
        finally:
            if process.poll() is None and waiting:
                process.terminate()
            process.wait()
        said.seek(0)
        last = said.read().decode(errors="replace").strip()[-2000:]
    for number, selector in enumerate(waiting):
        died = f"The process of the check ended (exit status {process.returncode}) before this was done."
        if number == 0:
            yield Checked(selector, "failed", failures={"the process": f"{died} It said last:\n{last}"})
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
    table.add_row(row.component, Text(row.status, style=style), Text(_told(row)))
    console.print(table)
    for test, message in row.failures.items():
        console.print(Padding(Text.assemble((test, "bold"), "\n", message), (0, 0, 0, 2)))


def _told(row: Checked) -> str:
    if row.reason:
        return row.reason
    counts: list[Any] = [(row.passed, "passed"), (len(row.failures), "failed"), (len(row.skipped), "not applicable")]
    told = ", ".join(f"{count} {what}" for count, what in counts if count)
    return f"{told} ({row.seconds:.0f} s)" if row.seconds else told
