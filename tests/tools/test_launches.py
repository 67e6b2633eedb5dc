"""`tools/bench.py launches`: what the executor does beside a program that XLA compiles whole."""

import pytest
import tensorflow as tf


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "small"), [("mlp", {"width": 32}), ("dcgan", {"channels": 4})])
def test_a_compiled_iteration_leaves_little_to_the_executor(kind, small):
    from benchmarks import cases, launches
    from benchmarks.skeleton import body_of

    from ganlab.training.graph.trainer import Trainer

    trainer = Trainer(cases.CASES[kind](jit="step", **small))
    to_device, to_host = launches.copies(body_of(trainer.graph()))
    assert to_device <= 2
    assert to_host == 0
    assert 0 < launches.launched(trainer.train) <= 40


def test_copies_are_those_between_kernels_of_a_gpu_and_of_the_host():
    from benchmarks import launches

    def copying(x, number):
        made = tf.sin(x) * tf.cast(number, tf.float32)  # a number of the host goes to the device
        with tf.device("CPU:0"):
            return tf.exp(made)  # and the product comes back

    specs = tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int32)
    assert launches.copies(tf.function(copying, autograph=False).get_concrete_function(*specs).graph) == (2, 1)
