"""`ganlab tensorboard`: TensorBoard on a folder of runs."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path

import click

from ganlab.errors import RunError

# TensorBoard keeps 10 pictures a tag by default; the pictures of a whole run are worth having.
_IMAGES = 200


@click.command("tensorboard")
@click.argument("runs", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--port", type=click.IntRange(0, 65535), help="Port; by default 6006 or the next that is free.")
@click.option("--host", help="Address to serve on; by default this machine alone can look.")
@click.option("--open/--no-open", "open_browser", default=False, help="Open a browser on it.")
def tensorboard(runs: Path, port: int | None, host: str | None, open_browser: bool) -> None:
    """Shows runs in TensorBoard, until Ctrl-C.

    RUNS is a folder of runs, or one run.
    """
    check_runs(runs)
    url = launch(runs, port, host)
    click.echo(f"TensorBoard on {runs}: {url} (Ctrl-C to stop)")
    if open_browser:
        webbrowser.open(url)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("Stopped.")


def check_runs(folder: Path) -> None:
    """Checks that there is something to show.

    Raises:
        RunError: The folder has no run.
    """
    from ganlab.runs import find_runs

    if not folder.is_dir():
        raise RunError(
            f"There is no folder {folder} of runs here. Give the folder that 'ganlab run --runs' wrote to, "
            "or make a first run: ganlab run --gin quickstart.gin"
        )
    if next(find_runs(folder), None) is None:
        raise RunError(f"{folder} holds no run: no run.json at or below it. Give the folder 'ganlab run' wrote to.")


def launch(runs: Path, port: int | None, host: str | None) -> str:
    """Starts a TensorBoard server in a thread of this process.

    Args:
        runs: What to show.
        port: 0 for any; None for 6006 or the next that is free.
        host: None for this machine alone.

    Returns:
        Its address.

    Raises:
        RunError: It cannot serve there.
    """
    from tensorboard import program

    arguments = ["tensorboard", "--logdir", str(runs), "--samples_per_plugin", f"images={_IMAGES}"]
    arguments += ["--window_title", f"ganlab: {runs}"]
    arguments += ["--port", str(port)] if port is not None else []
    arguments += ["--host", host] if host else []
    server = program.TensorBoard()
    server.configure(argv=arguments)
    try:
        return str(server.launch())
    except program.TensorBoardServerException as error:
        raise RunError(f"TensorBoard cannot serve on {host or 'localhost'}, port {port}: {error}") from None
