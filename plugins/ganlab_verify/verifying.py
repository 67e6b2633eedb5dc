"""Runs the checks of one experiment (`ganlab.verify`) or of several, each check in its own processes."""

from __future__ import annotations

import contextlib
import contextvars
import importlib.util
import inspect
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import ganlab
from ganlab.commands import read_experiment, several, shipped_folder, use_plugins
from ganlab.errors import ConfigError, IncompatibleError, nearest
from ganlab_verify.checks import CHECKS, Options, run
from ganlab_verify.process import ending_together
from ganlab_verify.report import Row, Source
from ganlab_verify.tpu.chips import topology as tpu_topology


def verify(
    gin: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    params: str | Sequence[str] = (),
    checks: str | Sequence[str] = tuple(CHECKS),
    replicas: int | Sequence[int] = (1, 2, 4),
    iterations: int = 5,
    topology: str = "v5e:2x2",
    install: bool = False,
    no_plugin: str | Sequence[str] = (),
    plugin_file: str | os.PathLike[str] | None = None,
) -> list[Row]:
    """Proves that an experiment's numbers do not depend on where it runs, and that its gradients are its losses'.

    The same as `ganlab verify` on the command line. Each check runs in its own processes and takes from seconds to
    minutes.

    Args:
        gin: The experiment file, by path or by the name of a shipped one; or several, where later ones override
            earlier ones.
        params: Overrides, each `NAME=VALUE`.
        checks: Names of checks: `replicas`, `graph`, `gradients`, `microbatches`, `resume`, `tpu`.
        replicas: Numbers of replicas, each compared with one device.
        iterations: Iterations of every training run, at least 2.
        topology: The TPU that the check `tpu` compiles for.
        install: Whether the TPU compiler (600 MB) may be installed.
        no_plugin: Names of plugins to leave out.
        plugin_file: A plugin in one file, or None for the `ganlab_plugins.py` beside the first experiment file.

    Returns:
        A row for each check, in the order of `checks`, with `status`, `figure`, `limit` and `detail`.

    Raises:
        ConfigError: The experiment is invalid, a check is unknown, or a number is out of range.
        IncompatibleError: The batch does not divide over a number of replicas.
        MissingDependencyError: TensorFlow is not installed.
    """
    files, checks = several.paths(gin, "gin"), several.texts(checks, "checks")
    replicas = several.whole_numbers(replicas, "replicas")
    unknown = [name for name in checks if name not in CHECKS]
    if unknown or not files:
        what = f"{unknown[0]!r} is not a check.{nearest(unknown[0], CHECKS)}" if unknown else "Missing experiment file."
        raise ConfigError(f"{what} Choose from {', '.join(CHECKS)}." if unknown else what)
    if several.whole_number(iterations, "iterations") < 2 or not replicas or min(replicas) < 1:
        raise ConfigError(
            f"iterations = {iterations} must be at least 2, and replicas = {list(replicas)} one or more numbers from 1."
        )
    source = Source(
        tuple(files),
        tuple(several.texts(params, "params")),
        tuple(several.texts(no_plugin, "no_plugin")),
        os.fspath(several.path(plugin_file, "plugin_file")) if plugin_file is not None else None,
    )
    options = Options(replicas=tuple(replicas), iterations=iterations, topology=topology, install=install)
    with started([source], checks, options) as (pending,):
        return [future.result() for future in pending]


@contextlib.contextmanager
def started(sources: Sequence[Source], checks: Sequence[str], options: Options) -> Iterator[list[list[Future[Row]]]]:
    """Context manager: starts the checks of experiments; an exception inside cancels those that have not begun.

    Args:
        sources: The experiments. Mistakes in them are found before any process starts.
        checks: Names of checks.
        options: Their options.

    Yields:
        The future rows of each experiment, in the order of `checks`.
    """
    if "tpu" in checks:
        tpu_topology(options.topology)  # raises if it is unknown
    for source in sources:
        _check(source, options.replicas)
    # Two at a time: building graphs keeps only one core busy.
    with ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 4)) as pool, ending_together():
        context = contextvars.copy_context()

        def begun(check: str, source: Source) -> Future[Row]:
            return pool.submit(context.copy().run, run, check, source, options)

        try:
            yield [[begun(check, source) for check in checks] for source in sources]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def shipped_experiments() -> list[str]:
    """Names of the shipped experiments, without those in folders: they are included, or have a purpose of their own."""
    folder = shipped_folder() or Path()
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.gin"))
    return [name for name in names if "/" not in name]


def _check(source: Source, replicas: Sequence[int]) -> None:
    from ganlab.lazy import require

    use_plugins(source.no_plugin, Path(source.plugin_file) if source.plugin_file else None, source.gin_files[0])
    recipe = read_experiment(source.gin_files, source.params)
    if importlib.util.find_spec("tensorflow") is None:
        require("tensorflow")  # raises, and names what to install
    batch = recipe.arguments.get("batch_size", inspect.signature(ganlab.experiment).parameters["batch_size"].default)
    for count in replicas:
        if batch % count:
            raise IncompatibleError(
                f"experiment.batch_size = {batch} does not divide over {count} replicas: each must get the same number "
                f"of examples. Choose other numbers with --replicas, or another --param experiment.batch_size."
            )
