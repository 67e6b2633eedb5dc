"""`tools/bench.py launches`: what the executor does beside a program that XLA compiles whole."""

import time

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


def test_waiting_is_not_processor_time():
    from benchmarks import launches

    def train(count):
        time.sleep(0.2)
        sum(range(100_000 * count))

    assert 0 < launches.busy(train, 1) < 0.1


def test_programs_are_compared_with_kernels_on_the_same_networks(monkeypatch, fresh_plugins):
    from benchmarks import launches

    from ganlab.training.graph import trainer

    class Trainer:
        def __init__(self, experiment):
            self.seconds = {"step": 0.02, "off": 0.01}[experiment.jit]

        def train(self, count):
            nonlocal worked
            worked += count * self.seconds

    worked = 0.0
    monkeypatch.setattr(trainer, "Trainer", Trainer)
    monkeypatch.setattr(launches.time, "process_time", lambda: worked)
    rows = launches.programs(3)
    assert [row.name.partition(":")[0] for row in rows] == ["eight_gaussians", "swiss_roll", "quickstart"]
    assert all(row.median == pytest.approx(2) and len(row.pairs) == 3 for row in rows)
