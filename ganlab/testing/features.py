"""Conformance of features: vectors of examples, each of its own example alone."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from ganlab.errors import IncompatibleError
from ganlab.interfaces import Dataset, Features
from ganlab.testing import parts
from ganlab.testing.conformance import Conformance, check, fail

_COUNT = 12


class FeaturesConformance(Conformance):
    """Holds features to their contract, on small images, or on points where they refuse those.

    class TestMine(FeaturesConformance):
        def make(self):
            return Mine()

    Attributes:
        sample_shape: That of an example; None for the first of (8, 8, 1), (16, 16, 3) and (2,) that they accept.
    """

    kind = "features"
    sample_shape: tuple[int, ...] | None = None

    def make(self) -> Features:
        """The features under test: new ones at every call. What an author writes."""
        raise NotImplementedError(f"{type(self).__name__} needs a method make(self) that returns new features.")

    def dataset(self, sample_shape: tuple[int, ...]) -> Dataset:
        """Data of a shape, without labels; override it where these features need some."""
        return parts.dataset(sample_shape)

    def _ready(self) -> tuple[Features, np.ndarray]:
        """Features that are prepared, and examples."""
        refusal = None
        for shape in [self.sample_shape] if self.sample_shape else [(8, 8, 1), (16, 16, 3), (2,)]:
            dataset, made = self.dataset(shape), self.make()
            try:
                made.prepare(dataset)
            except IncompatibleError as error:
                refusal = refusal or error
                continue
            return made, np.asarray(dataset.examples(tf.range(_COUNT, dtype=tf.int64), 0))
        pytest.skip(f"They do not take the kit's data: {refusal} Override dataset(self, sample_shape).")

    @check(first=True)
    def test_vectors_have_their_shape_and_are_finite(self) -> None:
        """`embed` returns finite floating-point vectors, `(n, d)`."""
        made, x = self.once("ready", self._ready)
        vectors = np.asarray(made.embed(x))
        if vectors.ndim != 2 or len(vectors) != len(x) or not np.issubdtype(vectors.dtype, np.floating):
            fail(f"embed returned {vectors.shape}, {vectors.dtype}, for {len(x)} examples; it must be float, (n, d).")
        if not np.isfinite(vectors).all():
            fail("embed returned values that are not finite.")

    @check()
    def test_rows_are_independent(self) -> None:
        """Row i is about example i alone, however many stand beside it."""
        made, x = self.once("ready", self._ready)
        whole = np.asarray(made.embed(x))
        some = np.asarray(made.embed(x[3:8]))
        if not np.allclose(some, whole[3:8], rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(whole).max()))):
            fail("The vector of an example changes with the examples beside it. Take each example alone.")

    @check()
    def test_embedding_twice_gives_the_same(self) -> None:
        """`embed` is a pure function once prepared, and does not write into what it is given."""
        made, x = self.once("ready", self._ready)
        given = x.copy()
        one, other = np.asarray(made.embed(given)), np.asarray(made.embed(given))
        if not np.array_equal(one, other):
            fail("The same examples gave other vectors the second time: draw nothing in embed, and keep no count.")
        if not np.array_equal(given, x):
            fail("embed changes the examples that it is given. Copy them first.")

    @check()
    def test_probabilities_sum_to_one(self) -> None:
        """`probabilities` returns a distribution over classes for each example, or None."""
        made, x = self.once("ready", self._ready)
        rows = made.probabilities(x)
        if rows is None:
            pytest.skip("They have no classes.")
        rows = np.asarray(rows)
        if rows.ndim != 2 or len(rows) != len(x) or (rows < 0).any() or not np.allclose(rows.sum(1), 1, atol=1e-4):
            fail("probabilities must be (n, classes), not negative, each row of sum 1.")
