"""Shell completion for the parameters of commands: files, runs, and names of all kinds."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from ganlab.plugins.manager import GROUP
from ganlab.support.paths import walk
from ganlab.support.terminal import line

Completer = Callable[[click.Context, str], Iterable[CompletionItem | str]]

# Users wait for the answer: search at most this many folders, and none deeper.
_FOLDERS, _DEPTH = 2000, 4
# Try at most this many runs, if the latest cannot be read.
_TRIED = 5
_RUN = "run.json"


def gin_files(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Experiment files and folders, and the names of shipped experiments."""
    from ganlab.config.files import shipped_folder, shipped_gin_files

    begin = incomplete.rpartition("/")[0] + "/" if "/" in incomplete else ""
    for path in sorted(Path(begin or ".").glob("*")):
        if path.suffix == ".gin":
            yield begin + path.name
        elif path.is_dir() and not path.name.startswith("."):
            yield f"{begin}{path.name}/"
    folder = shipped_folder() or Path()
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in shipped_gin_files()]
    yield from (name for name in names if not name.startswith("base/"))


def folders(ctx: click.Context, incomplete: str, *, marker: str = _RUN) -> Iterator[CompletionItem | str]:
    """Folders, and whole paths of the runs, which a file `marker` marks, below the typed text, or else below `runs`."""
    yield CompletionItem(incomplete, type="dir")
    start = Path(incomplete or "runs/")
    begin = start if not incomplete or incomplete.endswith("/") else start.parent
    for folder, below, files in itertools.islice(walk(begin), _FOLDERS):
        path = Path(folder)
        if marker in files and path != begin:
            yield str(path)
        if _RUN in files or len(path.relative_to(begin).parts) >= _DEPTH:
            below.clear()
        inside = [name for name in below if not name.startswith(".")]
        below[:] = sorted(name for name in inside if path != begin or str(path / name).startswith(incomplete))


def complete_folders(marker: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The `shell_complete` of a command's parameter that is a folder which a file of this name marks."""
    return lambda ctx, parameter, incomplete: _completed(functools.partial(folders, marker=marker), ctx, incomplete)


def checkpoints(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """The steps of the run's checkpoints."""
    for run in _given(ctx):
        for path in sorted(Path(run, "checkpoints").glob("step-*")):
            step = path.name.partition("-")[2]
            if step.isascii() and step.isdigit():
                yield step.lstrip("0") or "0"


def metrics(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """The metrics of one of the command's runs, or of the latest run."""
    info = _some_run(ctx)
    yield from info.get("metrics", {})
    for kind in ("evaluation", "diagnostics"):
        yield from (f"{kind}/{name}" for name in info.get(kind, {}))


def run_settings(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """The settings of one of the command's runs."""
    yield from _some_run(ctx).get("settings", {})


def settings(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Names of settings up to their next dot, and whole ones with `=`."""
    from ganlab.config.registry import EXPERIMENT, Names

    names = Names(_installed())
    found: dict[str, None] = {}
    for selector in (EXPERIMENT, *names.selectors):
        if selector.startswith(incomplete) or incomplete.startswith(f"{selector}."):
            whole = [f"{selector}.{parameter}=" for parameter in names.parameters(selector)]
        else:
            whole = []
        for name in whole:
            if name.startswith(incomplete):
                dot = name.find(".", len(incomplete))
                found[name if dot < 0 else name[: dot + 1]] = None
    yield from sorted(found)


def components(ctx: click.Context, incomplete: str, *, kind: str | None = None) -> Iterator[CompletionItem]:
    """Names of components: bare names for one kind, otherwise with their kinds."""
    for component in _installed().components.values():
        if kind is None:
            yield CompletionItem(f"{component.kind}.{component.name}", help=component.summary)
        elif component.kind == kind:
            yield CompletionItem(component.name, help=component.summary)


def explained(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem | str]:
    """Names of components with their kinds, those of a component's settings, and the tags of metrics."""
    from ganlab.config.metric_help import metric_names
    from ganlab.config.registry import EXPERIMENT, Names

    names = Names(_installed())
    yield from components(ctx, incomplete)
    selector = incomplete.rpartition(".")[0]
    if selector == EXPERIMENT or selector in names.selectors:
        yield from (f"{selector}.{parameter}" for parameter in names.parameters(selector))
    yield from metric_names(names)


def plugins(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Names of the installed plugins, without importing them."""
    yield from sorted(point.name for point in importlib.metadata.entry_points(group=GROUP))


# By the name of an option, or a command's name and its argument's metavar or name.
_COMPLETERS: dict[str, Completer] = {
    "--gin": gin_files,
    **{f"{name} FILE": gin_files for name in ("run", "show", "sweep", "plan", "verify")},
    "--param": settings,
    "--grid": settings,
    "--range": settings,
    "--no-plugin": plugins,
    "--constraint": functools.partial(components, kind="constraints"),
    "--evaluator": functools.partial(components, kind="evaluators"),
    "--launcher": functools.partial(components, kind="launchers"),
    "--search": functools.partial(components, kind="searches"),
    "--checkpoint": checkpoints,
    "--metric": metrics,
    "--objective": metrics,
    "--by": run_settings,
    "explain NAME": explained,
    "check NAME": components,
    "RUN": folders,
}


def completer(command: click.Command, parameter: click.Parameter) -> Completer | None:
    """The completer of a command's parameter; None where click's own is enough."""
    metavar = (parameter.metavar or parameter.name or "").strip(".[]").upper()
    for name in (*parameter.opts, f"{command.name} {metavar}", *metavar.split("|")):
        if name in _COMPLETERS:
            return _COMPLETERS[name]
    return None


def install(group: click.Group) -> None:
    """Adds completion to the parameters of a group's commands as the commands are loaded."""
    if not isinstance(group.get_command, functools.partial):
        group.get_command = functools.partial(_loaded, group.get_command)  # type: ignore[method-assign]


def _loaded(
    load: Callable[[click.Context, str], click.Command | None], ctx: click.Context, cmd_name: str
) -> click.Command | None:
    command = load(ctx, cmd_name)
    if isinstance(command, click.Group):
        install(command)
    if command is not None:
        for parameter in command.params:
            complete = completer(command, parameter)
            if complete is not None:
                parameter.shell_complete = functools.partial(_completed, complete)  # type: ignore[method-assign]
    return command


def _completed(complete: Completer, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The items that begin with the typed text; an error gives none, because nobody wants a traceback on TAB."""
    try:
        items = [
            item if isinstance(item, CompletionItem) else CompletionItem(item) for item in complete(ctx, incomplete)
        ]
    except Exception:
        return []
    # The shell reads items line by line and shows them: an untrusted name may hold line ends and escapes.
    items = [item for item in items if line(item.value) == item.value]
    return [item for item in items if item.type != "plain" or item.value.startswith(incomplete)]


def _installed() -> Any:
    """The installed plugins; a plugin file beside an experiment is not executed for TAB."""
    from ganlab.plugins.manager import discover

    return discover()


def _given(ctx: click.Context) -> list[str]:
    """The command's arguments; click leaves them unparsed after an option whose value is still missing."""
    sorted_out = ctx.params.get("run") or ctx.params.get("runs") or ()
    return [str(item) for item in (sorted_out if isinstance(sorted_out, tuple) else [sorted_out])] + ctx.args


def _some_run(ctx: click.Context) -> dict[str, Any]:
    """The run.json of a run that the command names, or of the latest readable run."""
    from ganlab.errors import GanlabError
    from ganlab.run import Run

    found = [path for root in _given(ctx) or ["runs"] for path in _runs(root)]
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:_TRIED]:
        with contextlib.suppress(GanlabError):
            return Run(path.parent).info
    return {}


def _runs(root: str) -> list[Path]:
    below = [str(item) for item in folders(click.Context(click.Command("")), f"{root}/") if isinstance(item, str)]
    return [path for folder in (root, *below) if (path := Path(folder, _RUN)).is_file()]
