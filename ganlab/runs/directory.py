"""One run's directory: created completely or not at all, updated atomically, read back without TensorFlow."""

from __future__ import annotations

import glob
import json
import os
import secrets
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ganlab.errors import RunError, nearest
from ganlab.interfaces.record import Record
from ganlab.runs.fields import cannot_be_made, check_encoding, check_name
from ganlab.runs.info import INFO, read_fields, read_info, read_text
from ganlab.support import several
from ganlab.support.atomic import new_folder, write_new, write_text
from ganlab.support.paths import as_name, check_links, local, walk
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl import read_metrics, to_json

if TYPE_CHECKING:
    from ganlab.composition import Experiment
    from ganlab.plugins.recipes import Recipe

CONFIG, OPERATIVE, METRICS = "config.gin", "operative.gin", "metrics.jsonl"


class RunDirectory:
    """A run on disk, finished or not, as data; `ganlab.Run` adds the methods that need TensorFlow."""

    def __init__(
        self, path: str | os.PathLike[str], *, experiment: Experiment | None = None, keeps: object = None
    ) -> None:
        """Takes a run's directory.

        Args:
            path: The directory.
            experiment: The experiment that it was trained with, as `ganlab.train` gives it and `given` checks it; from
                there come the values that config.gin cannot hold.
            keeps: An object to keep alive as long as the run, e.g. the temporary folder that holds the directory.

        Raises:
            RunError: The directory is not a run; the message describes what is there instead.
        """
        self._path, self._experiment, self._keeps = several.path(path, "path"), experiment, keeps
        if not os.path.isfile(self._path / INFO):
            raise RunError(_no_run(self._path))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    def __fspath__(self) -> str:
        """The run's directory, for functions that take one: `ganlab.compare([run])`."""
        return str(self._path)

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self._path

    @property
    def experiment(self) -> Experiment | None:
        """The experiment that it was trained with, where a caller has given it; `ganlab.train` has."""
        return self._experiment

    @property
    def info(self) -> dict[str, Any]:
        """The contents of run.json now, with `status`, `step`, `metrics`, `provenance` and more; `update` changes it.

        Fields that are invalid are left out.

        Raises:
            RunError: The file is missing, is not JSON, or does not hold an object.
        """
        return read_info(self._path)

    @property
    def config(self) -> str:
        """The text of config.gin, the whole experiment with overrides folded in."""
        return read_text(self._path, CONFIG)

    @property
    def operative(self) -> str:
        """The text of operative.gin, every parameter in use, including defaults."""
        return read_text(self._path, OPERATIVE)

    def check(self) -> None:
        """Checks that a run, which may come from a stranger, is safe to resume or evaluate.

        Raises:
            RunError: A field of run.json is invalid, or a link in the folder leads out of it.
        """
        check_encoding(self._path)
        for problem in read_fields(self._path)[1].values():
            raise problem
        check_links(self._path)

    def recipe(self, params: Sequence[str] = (), *, only: Sequence[str] | None = None) -> Recipe:
        """The experiment that config.gin describes, with the values that were made in Python; nothing is built yet.

        Args:
            params: Overrides, as `--param` takes them.
            only: The settings to read; None for all.

        Raises:
            ConfigError: The file does not fit the plugins in use, an override is wrong, or a value was made in Python,
                and there is no `experiment` to take it from.
            PluginError: As before, and the run used a plugin file, which the message names.
            RunError: Such values are missing from `experiment`, because the run was changed since.
        """
        from ganlab import config
        from ganlab.runs.given import check_settings
        from ganlab.runs.plugin_file import named_in_errors

        objects: Mapping[str, Any] = {}
        if self._experiment is not None and f"%{config.ONLY_IN_PYTHON}" in self.config:
            check_settings(self._path, self.info, self._experiment)
            objects = config.objects(self._experiment.recipe)
        with named_in_errors(self._path):
            return config.load([self._path / CONFIG], params, only=only, objects=objects)

    def given(self, experiment: Experiment | None) -> Self:
        """The run with the experiment that it was trained with; itself for None.

        What was made in Python and not by a registered factory cannot be made again from config.gin, and is taken from
        there. `ganlab.train` returns a run that has its experiment.

        Raises:
            ConfigError: It is not an experiment.
            RunError: It is not the run's experiment.
        """
        from ganlab.runs.given import check_given

        if experiment is None:
            return self
        check_given(self._path, self.info, experiment)
        return type(self)(self._path, experiment=experiment, keeps=self._keeps)

    def iter_metrics(self) -> Iterator[Record]:
        """Every metric of every logged step, in order, one line of metrics.jsonl in memory at a time.

        Raises:
            RunError: The file has an invalid line.
        """
        return read_metrics(self._path / METRICS)

    def metrics(self) -> list[Record]:
        """Every metric of every logged step, in order.

        Raises:
            RunError: The file has an invalid line.
        """
        return list(self.iter_metrics())

    def update(self, **fields: Any) -> None:
        """Sets fields of run.json, atomically: a crash leaves the old file or the new one.

        Args:
            **fields: Top-level fields with their new values, plain ones or numbers of numpy.

        Raises:
            TypeError: A value has no equivalent in JSON.
        """
        write_info(self._path, {**self.info, **fields})


def write_info(folder: Path, info: Mapping[str, Any]) -> None:
    """Replaces a run's run.json, atomically.

    Raises:
        TypeError: A value has no equivalent in JSON.
    """
    write_text(folder / INFO, _to_text(info))


def new_run_path(
    root: str | os.PathLike[str], stem: str, seed: int, name: str | None = None, *, address: str = ""
) -> Path:
    """The path of a new run. Nothing is created yet.

    Args:
        root: The folder of all runs.
        stem: The experiment file's name without its ending. If it cannot name a folder, it is changed.
        seed: The run's seed.
        name: The run's name; by default the UTC time, the seed and four random hex digits.
        address: Where `root` is mirrored, for the advice if the name is taken.

    Returns:
        `<root>/<stem>/<name>`, which does not exist yet.

    Raises:
        RunError: The name is taken, or cannot name a folder.
    """
    folder = local(root, "runs") / as_name(stem)
    if name is None:
        time = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        return folder / f"{time}-s{seed}-{secrets.token_hex(2)}"
    check_name("run name", name)
    if os.path.lexists(folder / name):
        taken = "/".join((address.rstrip("/"), folder.name, name)) if address else str(folder / name)
        raise RunError(
            f"A run {name!r} already exists in {line(folder)}. "
            f"Choose another name, or resume it: --resume {line(shlex.quote(taken))}"
        )
    return folder / name


def create_run(
    path: str | os.PathLike[str],
    *,
    config: str,
    operative: str,
    info: Mapping[str, Any],
    fill: Callable[[Path], None] = lambda folder: None,
) -> RunDirectory:
    """Creates a run's directory with its first files. If that fails, nothing is left behind.

    Args:
        path: The directory, from `new_run_path`.
        config: The text of config.gin.
        operative: The text of operative.gin.
        info: The fields of run.json.
        fill: Writes whatever else the run has from the first moment on, into the folder that it is called with.

    Returns:
        The run.

    Raises:
        RunError: The directory already exists, or cannot be created.
        TypeError: A field is nothing that JSON has.
    """
    path = Path(path)
    files = {CONFIG: config, OPERATIVE: operative, INFO: _to_text(info)}
    if os.path.lexists(path):
        raise RunError(f"{path} already exists; a new run needs a directory of its own. Choose another name.")
    with new_folder(path, cannot_be_made) as part:
        for name, text in files.items():
            write_new(part / name, text)
        fill(part)
    return RunDirectory(path)


def find_runs(root: str | os.PathLike[str]) -> Iterator[Path]:
    """The directories of all runs at or below a folder, sorted by path."""
    for folder, below, files in walk(root):
        if INFO in files:
            below.clear()
            yield Path(folder)
        below[:] = [name for name in below if not name.startswith(".")]


def runs_matching(pattern: str | os.PathLike[str]) -> Iterator[Path]:
    """The directories of the runs that a run, a folder of runs or a pattern of either names.

    An existing path is taken literally, even if its name contains brackets. `**` follows no links, which a stranger's
    folder may have in circles.
    """
    path = local(pattern)
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        yield from find_runs(path)
        return
    parts = [part if part == "**" else part.replace("**", "*") for part in path.relative_to(path.anchor).parts]
    for match in sorted(Path(path.anchor or ".").glob("/".join(parts))):
        if not any(part.startswith(".") for part in set(match.parts) - set(parts)):
            yield from find_runs(match)


def _to_text(info: Mapping[str, Any]) -> str:
    return json.dumps(to_json(dict(info)), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _no_run(path: Path) -> str:
    name = line(path)
    if not os.path.lexists(path):
        siblings = [item.name for item in path.parent.iterdir()] if os.path.isdir(path.parent) else []
        return f"Run {name} not found: no such directory.{nearest(path.name, siblings)}"
    if not path.is_dir():
        return f"{name} is a file; a run is a directory with a {INFO}."
    if os.path.lexists(path / INFO):
        return f"{name} is not a run: its {INFO} is not a regular file. Restore it, or remove the folder with rm."
    runs = list(find_runs(path))
    if not runs:
        return f"{name} is not a run: it has no {INFO}."
    latest = max(runs, key=_written)
    return f"{name} is not a run but contains {len(runs)} of them; the latest is {line(latest)}."


def _written(path: Path) -> float:
    try:
        return os.lstat(path / INFO).st_mtime
    except OSError:  # removed since
        return 0.0
