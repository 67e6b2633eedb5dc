"""Runs of short steps on the ring, made by the command line."""

import contextlib

from click.testing import CliRunner

import ganlab
from ganlab.cli import cli
from ganlab.plugins import manager as plugins

SMALL = """
include 'base/toy.gin'
experiment.critic_steps = 2
experiment.batch_size = 16
experiment.log_every = 4
experiment.checkpoint_every = 10
experiment.evaluate_every = 12
experiment.evaluators = [@evaluators.exact_w1()]
evaluators.exact_w1.samples = 64
architectures.mlp.width = 6
architectures.mlp.depth = 2
"""
RING = "experiment.dataset = @datasets.gaussian_ring()\n"
PENALTY = f"{RING}experiment.constraints = [@constraints.gradient_penalty()]"
# The learning rate of base/toy.gin falls over all steps.
CONSTANT = f"{PENALTY}\noptimizers.adam.schedule = 'constant'"


def invoke(*arguments, code=0):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def trained(folder, text, plugin="", steps=23):
    with contextlib.chdir(folder), plugins.using():
        (folder / "e.gin").write_text(f"{SMALL}experiment.steps = {steps}\n{text}")
        if plugin:
            (folder / "ganlab_plugins.py").write_text(plugin)
        invoke("run", "--gin", "e.gin", "--name", "a")
    return ganlab.Run(folder / "runs" / "e" / "a")


def files(run):
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
