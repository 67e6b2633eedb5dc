"""Communication between replicas as XLA operations, and the reasons why a graph cannot be lowered."""

import re
from pathlib import Path

import pytest

REPLICAS = 4


@pytest.fixture(scope="module")
def strategy():
    from ganlab_verify.tpu.strategy import CompileOnlyStrategy

    return CompileOnlyStrategy(REPLICAS)


@pytest.fixture
def lowered(strategy):
    """The StableHLO of a replica's function of a float32 vector of 3."""
    import tensorflow as tf

    def lowered(function):
        run = tf.function(lambda x: strategy.run(function, args=(x,)), jit_compile=True, autograph=False)
        return run.experimental_get_compiler_ir(tf.TensorSpec([3]))(stage="stablehlo")

    return lowered


def context():
    import tensorflow as tf

    return tf.distribute.get_replica_context()


def test_it_claims_its_replicas_and_runs_none(strategy):
    assert strategy.num_replicas_in_sync == REPLICAS
    with pytest.raises(RuntimeError, match="lower that"):
        strategy.run(lambda: 0)


def test_a_sum_is_an_all_reduce_over_every_replica(lowered):
    text = lowered(lambda x: context().all_reduce("SUM", x))
    assert text.count("stablehlo.all_reduce") == 1
    assert "replica_groups = dense<[[0, 1, 2, 3]]>" in text
    assert "stablehlo.divide" not in text


def test_a_mean_divides_the_sum_by_the_replicas(lowered):
    text = lowered(lambda x: context().all_reduce("MEAN", x))
    assert text.count("stablehlo.all_reduce") == text.count("stablehlo.divide") == 1
    assert "dense<4.000000e+00>" in text


def test_a_replica_knows_its_number_from_xla(lowered):
    import tensorflow as tf

    text = lowered(lambda x: x + tf.cast(context().replica_id_in_sync_group, tf.float32))
    assert text.count("stablehlo.replica_id") == 1


@pytest.mark.parametrize(("axis", "shape"), [(0, "12x2"), (1, "3x8"), (-1, "3x8")])
def test_a_gather_has_the_rows_of_all_replicas(lowered, axis, shape):
    import tensorflow as tf

    text = lowered(lambda x: context().all_gather(tf.stack([x, x], axis=1), axis=axis))
    assert text.count("stablehlo.all_reduce") == 1
    assert re.search(rf"func.func @main\(.*\) -> \(?tensor<{shape}xf32>", text)


def test_an_all_reduces_gradient_is_an_all_reduce(lowered):
    import tensorflow as tf

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.square(context().all_reduce("SUM", x))
        return tape.gradient(y, x)

    assert lowered(gradient).count("stablehlo.all_reduce") == 2


def refused(function, *specs):
    """The obstacles of a function that XLA rejects."""
    import tensorflow as tf
    from ganlab_verify.tpu import obstacles

    compiled = tf.function(function, jit_compile=True, autograph=False)
    graph = compiled.get_concrete_function(*specs).graph
    with pytest.raises(ValueError, match="tf2xla") as caught:
        compiled.experimental_get_compiler_ir(*specs)(stage="stablehlo")
    return obstacles.of_lowering(graph, caught.value)


def number_of(mark):
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


def test_operations_without_a_kernel_are_named_line_by_line():
    import tensorflow as tf

    def function(x):
        counts = tf.histogram_fixed_width(x, [0.0, 1.0])  # histogram
        return tf.py_function(lambda c: c, [counts], tf.int32)  # python

    found = refused(function, tf.TensorSpec([3]))
    assert ("EagerPyFunc", number_of("python")) in {(o.op, o.line.number) for o in found}
    assert {o.line.number for o in found} == {number_of("histogram"), number_of("python")}
    assert {Path(o.line.file).name for o in found} == {Path(__file__).name}


def test_an_operation_within_a_branch_is_found():
    import tensorflow as tf

    def blurred(x):
        return tf.image.resize(x, (4, 4), method="bicubic")  # branch

    def function(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: blurred(x), lambda: x[:, :4, :4])

    (obstacle,) = refused(function, tf.TensorSpec([1, 8, 8, 1]))
    assert (obstacle.op, obstacle.line.function, obstacle.line.number) == (
        "ResizeBicubic",
        "blurred",
        number_of("branch"),
    )


def test_a_size_that_depends_on_data_is_named_with_its_line():
    import tensorflow as tf

    def function(x):
        return tf.zeros(tf.cast(x[:1], tf.int32))  # size

    (obstacle,) = refused(function, tf.TensorSpec([3]))
    assert (obstacle.op, obstacle.line.number) == ("Fill", number_of("size"))
    assert "must be a compile-time constant" in obstacle.reason
    assert "\n" not in obstacle.reason


def test_every_operation_of_the_users_has_its_line():
    import tensorflow as tf

    from ganlab.training.graph import op_source

    def function(x):
        return tf.exp(x, name="mine")  # exponential

    graph = tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec([3])).graph
    line = op_source.lines(graph)["mine"]
    assert (line.function, line.number) == ("function", number_of("exponential"))
    assert line.code.startswith('return tf.exp(x, name="mine")')
