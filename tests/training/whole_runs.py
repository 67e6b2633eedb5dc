"""A run with every kind of state and of row, and the comparison of two runs bit for bit."""

import json
import shutil
from collections import Counter

import numpy as np
import tensorflow as tf
from small import constraint, small, values
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

import ganlab
from ganlab.training import start
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.trainer import Trainer


def everything(**parts):
    """Ten steps with every kind of state and of row: an average, power iterations, Adam, logs that divide nothing."""
    return small(
        2,
        **{
            "constraints": [constraint("spectral_norm"), constraint("gradient_penalty", weight=1.0)],
            "optimizer": ganlab.component("optimizers", "adam")(learning_rate=1e-3),
            "ema_decay": 0.5,
            "steps": 10,
            "log_every": 3,
            "checkpoint_every": 2,
            "evaluate_every": 5,
            "evaluators": [ganlab.component("evaluators", "mode_coverage")(samples=100)],
            **parts,
        },
    )


def train(experiment, folder, **options):
    """`ganlab.train` of an experiment, with the options of its inside."""
    return start.train(experiment, folder, as_run=ganlab.Run, **options)


class Oddity(BaseException):
    """No Exception, so that most handlers let it pass."""


class Graph:
    """Trains one experiment several times with a graph that is built once.

    For tests of files, signals and rows. Each training begins with the values that a new process begins with.
    """

    def __init__(self, experiment):
        self.experiment, self.trainer = experiment, Trainer(experiment)
        self._first = values(self.trainer.state)

    def train(self, folder, **options):
        self.trainer.state.step = 0
        with self.experiment.strategy.scope():
            for name, variable in self.trainer.state.variables().items():
                variable.assign(self._first[name])
        return train(self.experiment, folder, **{"trainer": lambda experiment: self.trainer, **options})


def copied(run, folder, **info):
    """A copy of a run in this folder, of which run.json has other fields."""
    shutil.copytree(run.path, folder)
    ganlab.Run(folder).update(**info)
    return folder


def lines(run):
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def checkpointed(run):
    """Every number of the last checkpoint."""
    checkpoint = Checkpoints(run.path / "checkpoints").latest()
    reader = tf.train.load_checkpoint(checkpoint.prefix)
    names = [n for n in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in n]
    return checkpoint.step, {name: reader.get_tensor(name) for name in names}


def events(run):
    """Every value of the event files with its step, in the order of the files."""
    return [
        (event.step, value)
        for path in sorted(run.path.glob("events.out.tfevents.*"))
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
    ]


def scalars(run):
    """Every figure of the event files by step and tag; none may occur twice."""
    found = [
        (step, value.tag, float(tensor_util.make_ndarray(value.tensor)))
        for step, value in events(run)
        if value.metadata.plugin_data.plugin_name == "scalars"
    ]
    twice = [key for key, count in Counter((step, tag) for step, tag, _ in found).items() if count > 1]
    assert not twice
    return sorted(found)


def texts(run, tag):
    """The texts of a tag in the event files, by step, in the order of the files."""
    return [(step, b"".join(value.tensor.string_val)) for step, value in events(run) if value.tag == tag]


def assert_equal_bits(one, other):
    """Asserts that two runs have the same rows and the same last checkpoint, bit for bit."""
    assert (one.path / "metrics.jsonl").read_bytes() == (other.path / "metrics.jsonl").read_bytes()
    (step, numbers), (other_step, others) = checkpointed(one), checkpointed(other)
    assert step == other_step
    assert numbers.keys() == others.keys()
    for name, value in numbers.items():
        np.testing.assert_array_equal(others[name], value, err_msg=name)


def assert_equal_runs(one, other, kinds=("optimizer", "spectral_norm", "average")):
    """Asserts that two runs are equal bit for bit, except times, and that they have variables of these kinds."""
    assert_equal_bits(one, other)
    _, numbers = checkpointed(one)
    assert all(any(kind in name for name in numbers) for kind in kinds)
    assert scalars(one) == scalars(other)
    for field in ("status", "step", "metrics", "evaluation"):
        assert one.info[field] == other.info[field]


def edit(path, before, after):
    """Replaces text of a file, which must have it."""
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
