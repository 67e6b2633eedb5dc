"""`ganlab certify`: bounds how steep the critic of a run or a file is, or how far a generator is from the data."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

import ganlab_certify
from ganlab import Run
from ganlab.commands import (
    LocalPath,
    RunsPath,
    checkpoint_option,
    printing_to_stderr,
    run_with_plugins,
    say,
    say_json,
    start_tensorflow,
)
from ganlab.files import line
from ganlab_certify import output
from ganlab_certify.models import open_model
from ganlab_certify.rungs import RUNGS

if TYPE_CHECKING:
    from ganlab.engine import Step

_OF_DISTANCE = ("samples", "confidence", "box")


@click.command("certify")
@click.argument("run", metavar="[RUN]", type=RunsPath(), required=False)
@click.option(
    "--model",
    metavar="FILE",
    type=LocalPath(),
    help="A critic's file in the place of a run: .keras, .onnx, or .safetensors beside a .json that lists its layers.",
)
@click.option(
    "--rung",
    "rungs",
    type=click.Choice(RUNGS),
    multiple=True,
    help="A certificate to compute; may be given several times. By default all.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="How long each slow rung, and the attack, may take; what they have by then is sound.",
)
@click.option(
    "--distance",
    is_flag=True,
    help="Bound the Wasserstein-1 distance between data and generator instead, by held-out samples.",
)
@output.interval_options(
    "With --distance: held-out samples of each kind.", "With --distance: how probably the interval holds it."
)
@click.option(
    "--box",
    type=float,
    nargs=2,
    metavar="LOW HIGH",
    help="With --distance or --model: the least and the largest value that any number of an example or a sample takes. "
    "With --distance it is by default -1 and 1 for images, and for vectors a box wider than that of samples.",
)
@checkpoint_option
@click.option("--json", "as_json", is_flag=True, help="Print the bounds as JSON.")
@run_with_plugins
@click.pass_context
def certify(
    ctx: click.Context,
    run: Path | None,
    model: Path | None,
    rungs: tuple[str, ...],
    seconds: float,
    distance: bool,
    samples: int,
    confidence: float,
    box: tuple[float, float] | None,
    checkpoint: Step,
    as_json: bool,
) -> None:
    """Bounds the Lipschitz constant of a run's critic, or of a file's, from above and from below.

    From above by certificates, each rung tighter and slower than the one before: products of the layers' norms,
    products across activations, a semidefinite bound, the same within the box of the data and the samples, and for
    small critics with rectifiers the constant itself. From below by an attack that looks for steep places. Writes
    nothing. If no certificate that --rung asks for suits the critic, the exit status is 1.

    With --model it is the critic of a file, which any program may have written.

    With --distance it prints an interval that holds the Wasserstein-1 distance between the data and the generator:
    from below by 1-Lipschitz functions such as the critic over its certified constant, from above by a coupling.

    \b
    ganlab certify runs/quickstart/20260801-120000-s0-1f2e
    ganlab certify RUN --rung semidefinite --seconds 300 --json
    ganlab certify RUN --distance --samples 65536
    ganlab certify --model critic.onnx --box -1 1
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if (run is None) == (model is None):
        raise click.UsageError("Name a run, or a critic's file by --model: one of the two.")
    if distance and (rungs or model):
        raise click.UsageError(
            "--distance takes the tightest certificate of a run's critic; leave out --rung and --model."
        )
    if not distance:
        _refuse_options_of_distance(ctx, boxed=model is not None)
    # Reports a mistake in the run or the file before TensorFlow starts.
    if model is None:
        source = run or Path()
        looked_at = Run(source)
        looked_at.recipe()
    else:
        open_model(source := model)
    with printing_to_stderr() if as_json else contextlib.nullcontext():  # components may print text that is not JSON
        start_tensorflow()
        if model is not None:
            bounds = ganlab_certify.certify_model(model, seconds=seconds, rungs=rungs or None, box=box)
        elif distance:
            interval = looked_at.certify_distance(
                checkpoint=checkpoint, samples=samples, confidence=confidence, box=box, seconds=seconds
            )
        else:
            bounds = looked_at.certify(checkpoint=checkpoint, seconds=seconds, rungs=rungs or None)
    if as_json:
        facts = output.distance_as_dict(interval) if distance else output.bounds_as_dict(bounds)
        say_json({"run" if model is None else "model": str(source), **facts})
    elif distance:
        output.show_distance(source, interval)
    else:
        output.show_bounds(source, bounds)
    if rungs and not distance and all(rung.bound is None for rung in bounds.rungs):
        reasons = dict.fromkeys(f"{rung.name}: {rung.note}" for rung in bounds.rungs)
        say(f"Error: no certificate that --rung asks for suits this critic. {line(' '.join(reasons))}", err=True)
        ctx.exit(1)


def _refuse_options_of_distance(ctx: click.Context, *, boxed: bool) -> None:
    names = _OF_DISTANCE[: 2 if boxed else 3]
    given = [f"--{name}" for name in names if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if given:
        has = "have" if len(given) > 1 else "has"
        options = " and ".join(given)
        raise click.UsageError(f"Without --distance {options} {has} no effect. Add --distance, or leave out {options}.")
