"""`ganlab evaluate`: measures the generator of an existing run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab import ConfigError, Run
from ganlab.commands import (
    GENERATOR_SETTINGS,
    OPENED,
    LocalPath,
    Override,
    RunsPath,
    checkpoint_option,
    part_override,
    print_table,
    printing_to_stderr,
    run_with_plugins,
    say,
    say_json,
    start_tensorflow,
)
from ganlab.files import line, local
from ganlab.runs import complaints_of, locked, name_of_complaint

if TYPE_CHECKING:
    from ganlab.engine import Step


@click.command("evaluate")
@click.argument("run", metavar="[RUN]", required=False, type=RunsPath())
@click.option(
    "--folder",
    metavar="FOLDER",
    type=LocalPath(),
    help="Measure the images of a folder in place of a run's samples.",
)
@click.option(
    "--against",
    metavar="REAL",
    help="With --folder: the folder of real images, a dataset such as '@datasets.keras()', or with --weights a .npz "
    "file of statistics.",
)
@click.option(
    "--weights",
    metavar="FILE",
    type=LocalPath(),
    help="With --folder: measure published scores in the features of an Inception network with these weights.",
)
@click.option("--metrics", metavar="LIST", help="With --weights: some of fid,kid,is,prdc; all by default.")
@click.option(
    "--save-statistics",
    "statistics",
    metavar="FILE",
    type=LocalPath(),
    help="With --weights: keep the mean and covariance of the real images in this .npz file, or use it if it exists.",
)
@click.option(
    "--size",
    metavar="PIXELS",
    type=click.IntRange(1, 4096),
    help="With --folder: the side of the squares that images become; that of the first one by default.",
)
@click.option(
    "--evaluator",
    "evaluators",
    metavar="NAME",
    multiple=True,
    help="An evaluator to use instead of the experiment's own: a name, or a reference such as "
    "'@small/evaluators.kid()'. May be given several times.",
)
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="Override a setting, for example 'evaluators.kid.samples=1000'. May be given several times.",
)
@checkpoint_option
@click.option("--save", is_flag=True, help="Add the figures of the newest checkpoint to run.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@run_with_plugins
def evaluate(
    run: Path | None,
    folder: Path | None,
    against: str | None,
    weights: Path | None,
    metrics: str | None,
    statistics: Path | None,
    size: int | None,
    evaluators: tuple[str, ...],
    params: tuple[str, ...],
    checkpoint: Step,
    save: bool,
    as_json: bool,
) -> None:
    """Measures the generator of a run, finished or not, from one of its checkpoints, or a folder of images.

    Uses one device, whatever the run trained on, and the same samples as during training. Writes nothing into the run
    without --save.

    \b
    ganlab evaluate runs/quickstart/20260801-120000-s0-1f2e --evaluator frechet_distance
    ganlab evaluate RUN --evaluator kid --param 'evaluators.kid.features=@features.classifier()'
    ganlab evaluate --folder SAMPLES --against REAL --evaluator kid
    ganlab evaluate --folder SAMPLES --against REAL --weights pt_inception-2015-12-05-6726825d.pth --metrics fid,kid
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if (run is None) == (folder is None):
        raise ConfigError("Name a run, or a folder of images by --folder, and not both.")
    if folder is not None:
        if against is None or bool(evaluators) == (weights is not None) or save or checkpoint is not None:
            raise ConfigError(
                "--folder needs --against, the folder of real images, and either --weights or --evaluator; --save and "
                "--checkpoint are for runs."
            )
        if weights is None and (metrics is not None or statistics is not None):
            raise ConfigError(
                "--metrics and --save-statistics are for --weights, the file of an Inception network's weights."
            )
        if not against.startswith("@"):
            local(against, "--against")
        published = None if weights is None else (weights, metrics, statistics)
        _evaluate_folder(folder, against, size, evaluators, params, published, as_json=as_json)
        return
    if (against, size, weights, metrics, statistics) != (None,) * 5:
        raise ConfigError("--against, --size, --weights, --metrics and --save-statistics are for --folder.")
    assert run is not None
    if save and OPENED in click.get_current_context().meta:
        raise ConfigError("--save adds to a run in a folder of this machine, not to one at an address. Leave it out.")

    measured = Run(run)
    chosen = _chosen(evaluators)
    own = () if chosen else ("evaluators",)
    recipe = measured.recipe([*chosen, *params], only=(*GENERATOR_SETTINGS, "dataset", *own))
    wanted = recipe.arguments.get("evaluators", [])
    if not wanted:
        raise ConfigError(
            f"The experiment of {run} has no evaluators. Name one, for example --evaluator frechet_distance; "
            "'ganlab plugins' lists them."
        )
    with printing_to_stderr() if as_json else contextlib.nullcontext():  # components may print text that is not JSON
        start_tensorflow()
        from ganlab.engine import declared_figures, diagnosed, find_checkpoint, make, unique_names

        step = find_checkpoint(measured, checkpoint).step
        if save and step != find_checkpoint(measured).step:
            raise ConfigError(
                f"--save is only for the newest checkpoint, whose figures are in run.json; step {step} is an older "
                "one. Leave out --save or --checkpoint."
            )
        with locked(measured) if save else contextlib.nullcontext():
            made = make(wanted)
            figures = measured.evaluate(made, checkpoint=step)
            sentences = diagnosed(unique_names(made), made, figures)
            wrong = [f"{name}: {sentence}" for name, sentence in sentences.items() if sentence]
            if save:
                others = [one for one in complaints_of(measured.info) or () if name_of_complaint(one) not in sentences]
                figures_now = {**measured.info.get("evaluation", {}), **figures}
                said = declared_figures(unique_names(made), made, make(recipe.arguments["dataset"]))
                said = {key: {**(measured.info.get(key) or {}), **of_figures} for key, of_figures in said.items()}
                measured.update(evaluation=figures_now, **said, health=[*others, *wrong])
    if as_json:
        say_json({"run": str(run), "step": step, "evaluation": figures, "health": wrong})
    else:
        _print(f"{line(run)}, step {step}", figures, wrong)


def _evaluate_folder(
    folder: Path,
    against: str,
    size: int | None,
    evaluators: Sequence[str],
    params: Sequence[str],
    published: tuple[Path, str | None, Path | None] | None,
    *,
    as_json: bool,
) -> None:
    chosen = _chosen(evaluators)
    with printing_to_stderr() if as_json else contextlib.nullcontext():
        start_tensorflow()
        from ganlab_evaluate import published as publishing
        from ganlab_evaluate.folders import evaluate_folder

        scores = None if published is None else publishing.asked(*published, against)
        found = evaluate_folder(folder, against, [*chosen, *params], size, published=scores, report=_report)
    wrong = [f"{name}: {sentence}" for name, sentence in found.complaints.items()]
    if as_json:
        row = {"folder": str(folder), "against": against, "images": found.images, "shape": list(found.shape)}
        say_json({**row, "evaluation": found.figures, "health": wrong})
    else:
        shape = " x ".join(map(str, found.shape))
        _print(f"{line(folder)}, {found.images:,} images as {shape}, against {line(against)}", found.figures, wrong)


def _chosen(evaluators: Sequence[str]) -> list[Override]:
    asked = " ".join(f"--evaluator {name!r}" for name in evaluators)
    return [part_override("evaluators", evaluators, asked)] if evaluators else []


def _report(text: str) -> None:
    say(text, err=True)


def _print(title: str, figures: Mapping[str, float], wrong: Sequence[str]) -> None:
    say(f"{title}:\n")
    rows = ((*name.split("/", 1), f"{value:.6g}") for name, value in figures.items())
    print_table(("evaluator", "figure", ">value"), rows)
    for sentence in wrong:
        say(f"- {line(sentence)}", err=True)
