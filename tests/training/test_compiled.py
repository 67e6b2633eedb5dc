"""XLA changes only the speed."""

import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf
from small import (
    Layers,
    assert_same,
    constraint,
    dropping_critic,
    normalized_critic,
    normalized_generator,
    small,
    strategy,
    trained,
)

import ganlab
from ganlab.training.graph.gradients import compiles
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.mark.parametrize("replicas", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_compiled_training_equals_uncompiled(replicas):
    parts = {
        "architecture": Layers(critic=dropping_critic),
        "constraints": [constraint("spectral_norm"), constraint("gradient_penalty")],
    }
    off, on = (trained(replicas, count=10, jit=jit, **parts) for jit in ("off", "on"))

    assert on.trainer.compiled == ["critic", "generator"]
    assert off.trainer.compiled == []
    assert_same(off, on)


NORMALIZED = [
    ("critic", normalized_critic, []),
    # The critic's part does not need the generator; the generator's gradient goes through both.
    ("generator", normalized_generator, ["critic"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("role", "network", "compiled"), NORMALIZED, ids=["critic", "generator"])
def test_part_that_communicates_stays_uncompiled(monkeypatch, role, network, compiled):
    parts = {"architecture": Layers(**{role: network}), "constraints": [constraint("weight_clipping", limit=0.5)]}
    one = trained(0, count=3, **parts)
    monkeypatch.setattr("ganlab.training.graph.trainer.compiles", lambda experiment: True)
    two = trained(2, count=3, jit="auto", **parts)
    assert two.trainer.compiled == compiled
    assert_same(one, two)


@pytest.mark.slow
@pytest.mark.parametrize(("role", "network", "compiled"), NORMALIZED, ids=["critic", "generator"])
def test_part_that_communicates_is_refused_under_jit_on(role, network, compiled):
    parts = {"architecture": Layers(**{role: network}), "constraints": [constraint("weight_clipping", limit=0.5)]}
    with pytest.raises(
        ganlab.IncompatibleError,
        match=rf"The {role}'s layer 'batch_normalization' \(BatchNormalization\) communicates.*jit is 'on'",
    ):
        Trainer(small(2, jit="on", **parts)).trace()
    # On one device there are no replicas to communicate with.
    alone = trained(0, count=3, jit="on", **parts)
    assert alone.trainer.compiled == ["critic", "generator"]
    assert_same(trained(0, count=3, **parts), alone)


def test_auto_looks_at_the_devices_of_the_strategy():
    experiment = small(0, jit="auto")

    def decided(*devices):
        extended = types.SimpleNamespace(worker_devices=devices)
        fake = types.SimpleNamespace(extended=extended, num_replicas_in_sync=1)
        return compiles(dataclasses.replace(experiment, strategy=fake))

    # As TensorFlow spells them under OneDevice, Mirrored, MultiWorkerMirrored and TPU strategies.
    assert decided("/device:CPU:0") is False
    assert decided("/job:localhost/replica:0/task:0/device:GPU:0", "/replica:0/task:0/device:GPU:1") is True
    assert decided("/job:worker/replica:0/task:1/device:CPU:0") is False
    assert decided("/job:worker/replica:0/task:0/device:TPU:0") is False


def test_every_strategy_names_its_devices():
    from tensorflow.python.distribute import collective_all_reduce_strategy, tpu_strategy

    for replicas, devices in ((0, 1), (2, 2)):
        found = [tf.DeviceSpec.from_string(d).device_type for d in strategy(replicas).extended.worker_devices]
        assert found == ["CPU"] * devices
    # These two need a cluster and a TPU.
    for extended in (collective_all_reduce_strategy.CollectiveAllReduceExtended, tpu_strategy.TPUExtended):
        assert isinstance(extended.worker_devices, property)


@pytest.mark.slow
def test_a_stack_that_reduces_in_advance_compiles():
    from contract_plugin import Dragan

    off, on = (trained(2, count=3, jit=jit, constraints=[Dragan()]) for jit in ("off", "on"))
    assert_same(off, on)
    assert np.isfinite(on.rows).all()
