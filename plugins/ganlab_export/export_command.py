"""`ganlab export`: writes the generator of a run for use without ganlab."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab import Run
from ganlab.commands import (
    GENERATOR_SETTINGS,
    LocalPath,
    RunsPath,
    checkpoint_option,
    run_with_plugins,
    say,
    start_tensorflow,
)
from ganlab.files import check_free
from ganlab.lazy import require
from ganlab_export import FORMATS

if TYPE_CHECKING:
    from ganlab.engine import Step


@click.command("export")
@click.argument("run", metavar="RUN", type=RunsPath())
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=LocalPath(),
    required=True,
    help="The folder to create; it must be new or empty.",
)
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="saved_model for TensorFlow (any generator), keras for a .keras file, onnx for other runtimes.",
)
@checkpoint_option
@run_with_plugins
def export(
    run: Path,
    output: Path,
    format: str,
    checkpoint: Step,
) -> None:
    """Writes the generator of a run for use without ganlab.

    Exports from a checkpoint, and the averaged generator if the run keeps one; the export draws the same samples.
    Beside the model are README.md, which explains how to load it, export.json with its settings and origin, and
    samples.npz to check it against. The files are read back and compared before DIR appears.

    \b
    ganlab export runs/quickstart/20260801-120000-s0-1f2e -o generator
    ganlab export RUN -o generator --format keras --checkpoint 5000
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    check_free(output)
    exported = Run(run)
    exported.recipe(only=GENERATOR_SETTINGS)  # reports a mistake in it before TensorFlow starts
    start_tensorflow()
    if format == "onnx":
        require("tf2onnx")
    import ganlab_export

    result = ganlab_export.export(exported, output, format=format, checkpoint=checkpoint)
    say(f"Wrote {output}: the generator at step {result['step']}, as {result['model']}.")
    if result["checked"]:
        say("Read back, it draws the same samples.")
    else:
        say("It was not read back because no runtime is installed: pip install onnxruntime, and see its README.md.")
    say(f"How to load it: {output / 'README.md'}")
