"""Conformance of features: one vector for each example, which depends on that example alone."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from ganlab import Dataset, Features
from ganlab.errors import IncompatibleError
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail

_COUNT = 12


class FeaturesConformance(Conformance):
    """Checks features against their contract, on small images, or on points if they refuse those.

    class TestMine(FeaturesConformance):
        def make(self):
            return Mine()

    Attributes:
        sample_shape: The shape of an example; None for the first of (8, 8, 1), (16, 16, 3) and (2,) that they accept.
    """

    kind, role = "features", Features
    sample_shape: tuple[int, ...] | None = None

    def dataset(self, sample_shape: tuple[int, ...]) -> Dataset:
        """Data of a shape, without labels; override it if these features need labels."""
        return parts.dataset(sample_shape)

    def _ready(self) -> tuple[Features, np.ndarray]:
        """Prepared features, and examples."""
        refusal = None
        for shape in [self.sample_shape] if self.sample_shape else [(8, 8, 1), (16, 16, 3), (2,)]:
            dataset, made = self.dataset(shape), self.make()
            try:
                made.prepare(dataset)
            except IncompatibleError as error:
                refusal = refusal or error
                continue
            return made, np.asarray(dataset.examples(tf.range(_COUNT, dtype=tf.int64), 0))
        pytest.skip(f"They do not accept the kit's data: {refusal} Override dataset(self, sample_shape).")

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
        """Row i depends on example i alone, whatever the other examples."""
        made, x = self.once("ready", self._ready)
        whole = np.asarray(made.embed(x))
        some = np.asarray(made.embed(x[3:8]))
        if not np.allclose(some, whole[3:8], rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(whole).max()))):
            fail("The vector of an example changes with the other examples. Embed each example alone.")

    @check()
    def test_embedding_twice_gives_the_same(self) -> None:
        """After `prepare`, `embed` is a pure function that does not write into its argument."""
        made, x = self.once("ready", self._ready)
        given = x.copy()
        one, other = np.asarray(made.embed(given)), np.asarray(made.embed(given))
        if not np.array_equal(one, other):
            fail("The same examples gave different vectors the second time: embed must draw nothing and count nothing.")
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
            fail("probabilities must be (n, classes), not negative, and each row must sum to 1.")
