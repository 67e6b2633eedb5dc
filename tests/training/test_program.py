"""An iteration that XLA compiles whole trains as one that runs operation by operation."""

import numpy as np
import pytest
import tensorflow as tf
from small import assert_same, constraint, small, trained, values

import ganlab
from ganlab.training.graph import noise, philox
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def part(kind, name, **arguments):
    return ganlab.component(kind, name)(**arguments)


@pytest.mark.parametrize("jit_compile", [True, False])
@pytest.mark.parametrize(("kind", "tolerance"), [("uniform", 0.0), ("normal", 2e-6)])
@pytest.mark.parametrize("count", [1, 7, 4096])
def test_composed_numbers_are_those_of_the_kernels(kind, tolerance, count, jit_compile):
    composed = tf.function(lambda *given: philox.composed(kind, count, *given), jit_compile=jit_compile)
    for offset in (0, 7, 2**33):
        seed, at = tf.constant([3, 2**41 + 5], tf.int64), tf.constant(offset, tf.int64)
        kernel = noise._philox(kind, count, seed, at)
        np.testing.assert_allclose(composed(seed, at), kernel, rtol=0, atol=tolerance)


# Functions, because components are made of tensors.
CASES = {
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


@pytest.mark.parametrize(
    "case", [case if case == "lazy penalty" else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
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
def test_program_resumes_bit_for_bit():
    parts = {"constraints": [constraint("spectral_norm"), constraint("gradient_penalty")], "jit": "step"}
    whole = trained(0, count=6, **parts)
    first, second = (Trainer(small(0, **parts)) for _ in range(2))
    first.train(3)
    for variable, value in zip(second.state.variables().values(), values(first.state).values(), strict=True):
        variable.assign(value)
    second.state.step = 3
    rows = second.train(3)
    np.testing.assert_array_equal(rows, whole.rows[3:])
    for name, value in values(second.state).items():
        np.testing.assert_array_equal(value, whole.values[name], err_msg=name)


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
        match=r"XLA cannot compile the operation HistogramFixedWidth \(.*test_program.py:\d+, .*histogram_fixed_width",
    ):
        Trainer(small(0, jit="step", constraints=[Histogram()])).trace()


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
