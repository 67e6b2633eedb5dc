"""`ganlab push`: publishes a run's networks."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ganlab import Run
from ganlab.commands import RunsPath, run_with_plugins, say, start_tensorflow
from ganlab.files import line


@click.command("push")
@click.argument("run", metavar="RUN", type=RunsPath())
@click.argument("address", metavar="ADDRESS")
@click.option(
    "--checkpoints",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="How many of the newest checkpoints, with the best one: 1 to sample, 2 to replay the last step, too.",
)
@click.option("--certify", is_flag=True, help="Bound the critic's Lipschitz constant, and put it on the card.")
@run_with_plugins
def push(run: Path, address: str, checkpoints: int, certify: bool) -> None:
    """Publishes a run: its networks as safetensors, its settings, a card, and an archive for 'ganlab pull'.

    ADDRESS is hf://USER/NAME, a repository of the Hugging Face Hub, any other address that fsspec knows, or a folder.

    \b
    ganlab push runs/ring/lazy hf://me/ring-lazy
    ganlab push runs/ring/lazy s3://bucket/zoo/ring-lazy --checkpoints 1
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    pushed = Run(run)
    start_tensorflow()
    from ganlab_remote import shipping

    names = shipping.push(pushed, address, checkpoints=checkpoints, certify=certify)
    say(f"Wrote {line(address)}: {', '.join(names)}. Elsewhere: ganlab pull {line(shlex.quote(address))}")
