"""A component that is made with another one is recorded, made again and resumed."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from small import constraint, small

import ganlab
from ganlab.composition import compose
from ganlab.run import train
from ganlab.training.checkpoints import Checkpoints

pytestmark = pytest.mark.usefixtures("cpus")


class Sum(ganlab.Constraint):
    """Penalties of other constraints, each with a factor."""

    def __init__(self, *, inner: list[ganlab.Constraint], factors: dict[str, float] | None = None) -> None:
        self.inner, self.factors = inner, factors or {}

    def penalty(self, critic, batch, state, replica):
        return tf.add_n([one.penalty(critic, batch, state, replica) for one in self.inner])


class Plugin:
    @ganlab.hookimpl
    def ganlab_constraints(self):
        return {"sum": Sum}


def final(run):
    checkpoint = Checkpoints(run.path / "checkpoints").latest()
    reader = tf.train.load_checkpoint(checkpoint.prefix)
    names = [name for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name]
    return {name: reader.get_tensor(name) for name in names}


@pytest.mark.slow
def test_a_constraint_inside_a_constraint(plugged, tmp_path):
    plugged(sums=Plugin())
    inner = [constraint("gradient_penalty", weight=3.0)]
    experiment = small(0, constraints=[constraint("sum", inner=inner)], steps=4, checkpoint_every=2)
    inner.clear()  # the list is the caller's; the arguments of the constraint are already recorded

    whole = train(experiment_with(3.0), tmp_path / "whole")

    assert "constraints.sum.inner = [@constraints.gradient_penalty()]" in whole.config
    assert "constraints.gradient_penalty.weight = 3.0" in whole.config
    again = compose(whole.recipe())
    assert again.recipe == experiment.recipe == experiment_with(3.0).recipe
    assert again.constraints[0].inner[0].weight == 3.0

    shutil.copytree(whole.path, tmp_path / "part")
    shutil.rmtree(tmp_path / "part" / "checkpoints" / "step-00000004")
    ganlab.Run(tmp_path / "part").update(status="interrupted")
    resumed = train(compose(ganlab.Run(tmp_path / "part").recipe()), tmp_path / "part", resume=True)

    assert resumed.info["status"] == "completed"
    for name, value in final(whole).items():
        np.testing.assert_array_equal(final(resumed)[name], value, err_msg=name)


def experiment_with(weight):
    inner = [constraint("gradient_penalty", weight=weight)]
    return small(0, constraints=[constraint("sum", inner=inner)], steps=4, checkpoint_every=2)
