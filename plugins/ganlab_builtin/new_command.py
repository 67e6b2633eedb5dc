"""`ganlab new`: an experiment file for a user's own images or arrays."""

from __future__ import annotations

import os
import re
import shlex
import warnings
from pathlib import Path

import click

import ganlab
from ganlab.commands import LocalPath, read_experiment, say, start_tensorflow, use_plugins
from ganlab.files import line, new_file, scratch_folder, write_text

_TRIED = 16  # examples


@click.command("new")
@click.option("--images", metavar="DIR", type=LocalPath(), help="A folder of pictures; its subfolders may be classes.")
@click.option("--array", metavar="FILE", type=LocalPath(), help="A .npy or .npz file, whose rows are examples.")
@click.option("--no-classes", is_flag=True, help="Ignore classes: one generator of everything.")
@click.option(
    "--size",
    metavar="PIXELS",
    type=click.IntRange(8, 1024),
    help="With --images, the side of the squares to train on; by default one that fits, at most 64.",
)
@click.option("--key", metavar="NAME", help="With --array, the array of a .npz file; by default the largest.")
@click.option(
    "--labels", metavar="NAME", help="With --array, its array of classes; by default the only one of whole numbers."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=LocalPath(dir_okay=False),
    help="The experiment file to write, which must not exist; by default named as the data.",
)
def new(
    images: Path | None,
    array: Path | None,
    no_classes: bool,
    size: int | None,
    key: str | None,
    labels: str | None,
    output: Path | None,
) -> None:
    """Looks at your own images or arrays, and writes an experiment file that trains on them.

    Reports how many there are, of what sizes and classes, and what cannot be read. The file names a dataset, networks
    and evaluators that fit; edit it as you like. Before it is written, its parts are made and some examples are read.

    \b
    ganlab new --images flowers
    ganlab new --array spectra.npz --key intensity --no-classes -o spectra.gin
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    source = images or array
    if source is None or (images and array):
        raise click.UsageError("Name your data: either --images DIR or --array FILE.")
    others = {"--size": size} if array else {"--key": key, "--labels": labels}
    for option, value in others.items():
        if value is not None:
            raise click.UsageError(f"{option} is for --{'images' if array else 'array'}: leave it out.")
    if labels is not None and no_classes:
        raise click.UsageError("--labels names classes, and --no-classes ignores them. Leave out one of them.")
    path = os.path.abspath(source.expanduser())
    target = output or Path(_name(path) + ".gin")
    _check_target(target)
    start_tensorflow()
    from ganlab_builtin.own_data import experiment_file, look_at_array, look_at_images

    if images:
        data = look_at_images(path, size=size, use_classes=not no_classes)
    else:
        data = look_at_array(path, key=key, labels=labels, use_classes=not no_classes)
    file = line(shlex.quote(str(target)))
    heading = "\n".join([f"{line(source)}: {data.facts[0]}", "Train on it:", f"  ganlab run {file}"])
    text = experiment_file(data, heading)
    _try(text)
    with new_file(target) as written:
        written.write(text.encode())
    say(f"{line(source)}\n" + "\n".join(f"  {line(fact)}" for fact in data.facts))
    picture = line(shlex.quote(str(target.with_suffix(".png"))))
    say(f"\nWrote {line(target)}. Next:\n")
    say(f"  ganlab dataset show {file} -o {picture}\n  ganlab plan --gin {file} --topology cpu\n  ganlab run {file}")


def _name(path: str) -> str:
    """The name of the experiment: of the data, in letters that need no quotes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", Path(path).stem).strip("-") or "own"


def _check_target(target: Path) -> None:
    if os.path.lexists(target):
        raise ganlab.ConfigError(f"{line(target)} exists, and is not overwritten. Choose another name with -o FILE.")
    if target.suffix != ".gin":
        raise ganlab.ConfigError(f"-o {line(target)} must end in .gin, as experiment files do.")
    if not target.parent.is_dir():
        raise ganlab.ConfigError(f"-o {line(target)}: there is no folder {line(target.parent)}. Make it first.")


def _try(text: str) -> None:
    """Makes every part of an experiment, and reads some examples.

    Raises:
        GanlabError: Something does not work, for example a picture that is broken inside.
    """
    from ganlab.engine import compose, first_examples

    use_plugins((), None)
    with warnings.catch_warnings(), scratch_folder("ganlab-new-") as folder:
        warnings.simplefilter("ignore")  # of the data, which the facts say
        file = Path(folder, "new.gin")
        write_text(file, text)
        experiment = compose(read_experiment([str(file)], ()))
        first_examples(experiment.dataset, _TRIED, 0)
