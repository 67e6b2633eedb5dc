"""`ganlab tensorboard`: shows runs in TensorBoard."""

from __future__ import annotations

import contextlib
import glob
import io
import signal
import sys
import threading
import types
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganlab.commands import RunsPath, handling, say
from ganlab.errors import RunError
from ganlab.files import line

if TYPE_CHECKING:
    from ganlab_tensorboard.logfolder import LogFolder

# TensorBoard keeps 10 pictures per tag by default; keep the pictures of a whole run.
_IMAGES = 200

# As often as TensorBoard looks for more data.
_LOOK_SECONDS = 3.0


@click.command("tensorboard")
@click.argument("runs", nargs=-1, type=RunsPath("list"), metavar="[RUN|FOLDER|GLOB]...")
@click.option("--port", type=click.IntRange(0, 65535), help="Port; by default 6006 or the next free one.")
@click.option("--host", help="Address to serve on; by default localhost, reachable from this machine only.")
@click.option("--open/--no-open", "open_browser", default=False, help="Open it in a browser.")
def tensorboard(runs: tuple[Path, ...], port: int | None, host: str | None, open_browser: bool) -> None:
    """Shows runs in TensorBoard, until Ctrl-C.

    Give runs, sweeps, other folders of runs, or quoted patterns such as 'runs/*/lazy-*'; the default is the folder
    runs. Runs are labelled by the settings in which they differ. HParams compares their settings and results. A run
    that starts later appears within seconds.
    """
    from ganlab_tensorboard.logfolder import LogFolder

    arguments = [*map(str, runs)] or ["runs"]
    check_runs(arguments)
    folder = LogFolder(lambda: found_runs(arguments), lambda sentence: say(f"Warning: {sentence}", err=True))
    with contextlib.closing(folder), _terminated_as_interrupted():
        folder.refresh()
        names = ", ".join(map(line, arguments))
        url = launch(folder.path, port, host, title=names)
        count = len(folder.names)
        say(f"TensorBoard on {names}, {count} {'run' if count == 1 else 'runs'}: {url} (Ctrl-C to stop)")
        if open_browser:
            webbrowser.open(url)
        try:
            _follow(folder)
        except KeyboardInterrupt:
            say("Stopped.")


def found_runs(arguments: Sequence[str]) -> Iterator[Path]:
    """The directories of the runs that arguments name: runs, folders of runs, or patterns of either."""
    from ganlab.runs import runs_matching

    for argument in arguments:
        yield from runs_matching(argument)


def check_runs(arguments: Sequence[str]) -> None:
    """Checks that each argument shows something.

    Raises:
        RunError: One has no run.
    """
    for argument in arguments:
        if next(found_runs([argument]), None) is not None:
            continue
        if glob.has_magic(argument):
            raise RunError(f"No run matches {argument!r}. List the existing runs: ganlab runs list")
        if not Path(argument).is_dir():
            raise RunError(
                f"There is no folder {argument}. Give the folder that 'ganlab run --runs' wrote to, "
                "or make a first run: ganlab run --gin quickstart.gin"
            )
        raise RunError(f"{argument} has no run: no run.json at or below it. Give the folder 'ganlab run' wrote to.")


def launch(folder: Path, port: int | None, host: str | None, *, title: str) -> str:
    """Starts a TensorBoard server in a thread of this process.

    Args:
        folder: The log folder to show.
        port: 0 for any; None for 6006 or the next free one.
        host: None for this machine only.
        title: The title of the browser's tab.

    Returns:
        Its address.

    Raises:
        RunError: TensorBoard cannot serve at this address.
    """
    # TensorBoard would spend seconds importing TensorFlow to read files that it can read without it. A module of this
    # name prevents that.
    sys.modules.setdefault("tensorboard.compat.notf", types.ModuleType("tensorboard.compat.notf"))
    from tensorboard import default, program
    from tensorboard.plugins.custom_scalar.custom_scalars_plugin import CustomScalarsPlugin
    from tensorboard.plugins.hparams.hparams_plugin import HParamsPlugin

    from ganlab_tensorboard.hosts import guarded
    from ganlab_tensorboard.tabs import ComparingHParams, MarkedCustomScalars

    ours = {HParamsPlugin: ComparingHParams, CustomScalarsPlugin: MarkedCustomScalars}
    arguments = ["tensorboard", "--logdir", str(folder), "--samples_per_plugin", f"images={_IMAGES}"]
    arguments += ["--window_title", f"ganlab: {title}", "--reload_interval", str(_LOOK_SECONDS)]
    arguments += ["--port", str(port)] if port is not None else []
    arguments += ["--host", host] if host else []
    server = program.TensorBoard(
        plugins=[ours.get(plugin, plugin) for plugin in default.get_plugins()],
        server_class=lambda app, flags: program.create_port_scanning_werkzeug_server(guarded(app, flags), flags),
    )
    server.configure(argv=arguments)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return str(server.launch())
    except program.TensorBoardServerException as error:
        raise RunError(f"TensorBoard cannot serve on {host or 'localhost'}, port {port}: {error}") from None
    finally:
        # Everything but the advice on an option for reading files, which this command does not have.
        messages = printed.getvalue().replace(getattr(program, "_DATA_SERVER_ADVISORY_MESSAGE", ""), "")
        say(messages, err=True, nl=False)


def _follow(folder: LogFolder) -> None:
    while not threading.Event().wait(_LOOK_SECONDS):
        with contextlib.suppress(OSError):  # a run was removed while it was read: try again soon
            folder.refresh()


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Context manager: turns SIGTERM and SIGHUP into a KeyboardInterrupt, so that cleanup runs."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        # A closing terminal may send SIGHUP twice, and the second must not interrupt the cleanup.
        if number == signal.SIGINT or len(received) == 1:
            raise KeyboardInterrupt

    with handling(interrupt):
        yield
