"""XLA changes only the speed: of parts of an iteration, and of an iteration that it compiles whole."""

import dataclasses
import types
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from making import component as part
from small import (
    Layers,
    assert_same,
    constraint,
    dropping_critic,
    normalized_critic,
    normalized_generator,
    small,
    trained,
)

import ganlab
from ganlab.training.graph import noise, philox
from ganlab.training.graph.gradients import compiles
from ganlab.training.graph.op_source import operations
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [0, 2])
def test_compiled_training_equals_uncompiled(replicas):
    parts = {
        "architecture": Layers(critic=dropping_critic),
        "constraints": [constraint("spectral_norm"), constraint("gradient_penalty")],
    }
    off, on = (trained(replicas, count=10, jit=jit, **parts) for jit in ("off", "on"))

    assert on.trainer.compiled == ["critic", "generator"]
    assert off.trainer.compiled == []
    assert_same(off, on)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "network", "compiled"),
    [
        ("critic", normalized_critic, []),
        # The critic's part does not need the generator; the generator's gradient goes through both.
        ("generator", normalized_generator, ["critic"]),
    ],
    ids=["critic", "generator"],
)
def test_part_that_communicates_stays_uncompiled_and_is_refused_under_jit_on(monkeypatch, role, network, compiled):
    parts = {"architecture": Layers(**{role: network}), "constraints": [constraint("weight_clipping", limit=0.5)]}
    one = trained(0, count=3, **parts)
    with monkeypatch.context() as patch:
        patch.setattr("ganlab.training.graph.trainer.compiles", lambda experiment: True)
        two = trained(2, count=3, jit="auto", **parts)
    assert two.trainer.compiled == compiled
    assert_same(one, two)
    with pytest.raises(
        ganlab.IncompatibleError,
        match=rf"The {role}'s layer 'batch_normalization' \(BatchNormalization\) communicates.*jit is 'on'",
    ):
        Trainer(small(2, jit="on", **parts)).trace()
    # On one device there are no replicas to communicate with.
    alone = trained(0, count=3, jit="on", **parts)
    assert alone.trainer.compiled == ["critic", "generator"]
    assert_same(one, alone)


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


@pytest.mark.parametrize("jit_compile", [True, False])
@pytest.mark.parametrize(("kind", "tolerance"), [("uniform", 0.0), ("normal", 2e-6)])
@pytest.mark.parametrize("count", [7, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 4096))])
def test_composed_numbers_are_those_of_the_kernels(kind, tolerance, count, jit_compile):
    composed = tf.function(lambda *given: philox.composed(kind, count, *given), jit_compile=jit_compile)
    for offset in (0, 7, 2**33):
        seed, at = (tf.constant(3, tf.int64), tf.constant(2**41 + 5, tf.int64)), tf.constant(offset, tf.int64)
        kernel = noise._philox(kind, count, seed, at)
        np.testing.assert_allclose(composed(seed, at), kernel, rtol=0, atol=tolerance)


class Random(ganlab.Dataset):
    """Examples by a random operation, whose numbers are others in a program of XLA's."""

    sample_shape, size = (2,), None

    def examples(self, numbers, seed):
        return tf.map_fn(lambda n: tf.random.stateless_normal([2], [seed, n]), numbers, fn_output_signature=tf.float32)


# Functions, because components are made of tensors.
CASES = {
    "examples by random operations": lambda: {"dataset": Random()},
    "examples by arithmetic": lambda: {"dataset": part("datasets", "swiss_roll")},
    "lazy penalty": lambda: {"constraints": [constraint("r1", every=3)], "critic_steps": 2},
    "states": lambda: {"constraints": [constraint("spectral_norm"), constraint("gradient_penalty")], "critic_steps": 3},
    "clipping": lambda: {"constraints": [constraint("weight_clipping", limit=0.1)], "ema_decay": 0.9},
    "microbatches": lambda: {"constraints": [constraint("gradient_penalty")], "microbatches": 3, "critic_steps": 2},
    "adam": lambda: {
        "critic_optimizer": part("optimizers", "adam", learning_rate=1e-3, epsilon=0.1),
        "constraints": [constraint("dragan")],
    },
    "a schedule": lambda: {"constraints": [constraint("r1", gamma=part("schedules", "linear", start=2.0, end=0.0))]},
    "pairs": lambda: {"loss": part("losses", "relativistic"), "generator_batch_size": 6},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["microbatches", "adam"])
def test_seed_is_an_input_of_the_program_and_has_the_bits_of_a_constant(monkeypatch, name):
    def trained_and_constants(seed):
        # Examples that the program makes would have the seed as a number.
        training = trained(0, count=3, jit="step", seed=seed, dataset=Random(), **CASES[name]())
        # What TensorFlow has captured is a constant in the graph, and an argument of its function.
        constants = [
            op.get_attr("value").SerializeToString(deterministic=True)
            for op in operations(training.trainer._inside)
            if op.type == "Const" and not any(op.outputs[0] is x for x in op.graph.inputs)
        ]
        return training, Counter(constants)

    (one, of_one), (_, of_other) = (trained_and_constants(seed) for seed in (12345, 54321))
    assert of_one == of_other
    monkeypatch.setattr(philox, "seed_of_program", lambda: None)
    constant, of_constant = trained_and_constants(12345)
    assert of_constant != of_one
    assert_same(one, constant, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_program_trains_as_the_kernels_do(case):
    parts = CASES[case]()
    kernels, program = (trained(0, count=5, jit=jit, **parts) for jit in ("off", "step"))
    assert program.trainer.compiled == ["step"]
    assert_same(kernels, program, rtol=2e-5, atol=2e-6)


@pytest.mark.slow
def test_one_replica_of_a_mirrored_strategy_is_a_program_too():
    parts = {"constraints": [constraint("gradient_penalty")], "critic_steps": 2, "count": 5}
    assert_same(trained(0, jit="off", **parts), trained(1, jit="step", **parts))


@pytest.mark.slow
def test_blocks_of_iterations_train_as_single_ones_do():
    parts = {"dataset": part("datasets", "swiss_roll"), "constraints": [constraint("gradient_penalty")]}
    at_once, in_parts, kernels = (Trainer(small(0, jit=jit, **parts)) for jit in ("step", "step", "off"))
    rows = at_once.train(70)  # more than two blocks of a program
    np.testing.assert_array_equal(rows, np.concatenate([in_parts.train(count) for count in (1, 32, 33, 4)]))
    np.testing.assert_allclose(rows, kernels.train(70), rtol=2e-5, atol=2e-6)


def test_several_replicas_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"MirroredStrategy trains 2. Set experiment.jit = 'auto'"):
        Trainer(small(2, jit="step"))


class Histogram(ganlab.Constraint):
    """Advances by an operation that XLA has no kernel for."""

    def initial_state(self, weights):
        return {"counts": tf.zeros([4], tf.int32)}

    def advance(self, weights, state, batch, replica):
        return {"counts": tf.histogram_fixed_width(batch.real[:, 0], [-2.0, 2.0], 4)}


def test_operation_without_a_kernel_is_named_with_its_line():
    with pytest.raises(
        ganlab.IncompatibleError,
        match=r"XLA cannot compile the operation HistogramFixedWidth \(.*test_compiled.py:\d+, .*histogram_fixed_width",
    ):
        Trainer(small(0, jit="step", constraints=[Histogram()])).trace()


@pytest.mark.slow
@pytest.mark.parametrize("traces", [True, False], ids=["noticed when traced", "noticed when run"])
def test_auto_takes_the_kernels_where_there_is_no_program(monkeypatch, traces):
    parts = {"constraints": [Histogram()], "critic_steps": 2}
    monkeypatch.setattr("ganlab.training.graph.program.on_gpu", lambda experiment: True)
    trainer = Trainer(small(0, jit="auto", **parts))
    assert trainer.compiled == ["step"]
    if traces:
        trainer.trace()
    rows = trainer.train(5)
    assert trainer.compiled == []
    np.testing.assert_array_equal(rows, trained(0, count=5, jit="off", **parts).rows)
