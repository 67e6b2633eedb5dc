"""The kit tests diagnostics and evaluators that need labels, and says of others what it cannot test."""

import numpy as np
import tensorflow as tf

import ganlab
from ganlab.testing import DiagnosticConformance, EvaluatorConformance


class Pictures(ganlab.Dataset):
    """Grey squares; the shade is the class."""

    sample_shape, size, classes = (4, 4, 1), 30, 3

    def examples(self, numbers, seed):
        shades = tf.cast(numbers % 3, tf.float32) / 3
        return tf.broadcast_to(shades[:, None, None, None], [tf.shape(numbers)[0], 4, 4, 1])

    def labels(self, numbers):
        return numbers % 3


class Spread(ganlab.Diagnostic):
    def look(self, critic):
        if critic.labels is None:
            raise ganlab.IncompatibleError("Spread needs labels.")
        return ganlab.Findings(figures={"classes": float(len(set(critic.labels.tolist())))})


class Shades(ganlab.Evaluator):
    def evaluate(self, sample, dataset, run):
        if sample.classes is None:
            raise ganlab.IncompatibleError("Shades needs a conditional generator.")
        assert len(sample(5, 1)) == 5
        return {str(label): float(sample(6, 2, np.full(6, label)).mean()) for label in range(sample.classes)}


class TestSpread(DiagnosticConformance):
    def make(self):
        return Spread()


class TestSpreadOfPictures(DiagnosticConformance):
    def make(self):
        return Spread()

    def dataset(self):
        return Pictures()


class TestShades(EvaluatorConformance):
    def make(self):
        return Shades()


class TestShadesOfPictures(EvaluatorConformance):
    def make(self):
        return Shades()

    def dataset(self):
        return Pictures()

    def test_samples_have_the_classes_that_are_asked_for(self):
        _, figures = self._first()
        np.testing.assert_allclose([figures[name] for name in "012"], [0, 1 / 3, 2 / 3], rtol=1e-6)
