"""Conformance of evaluators: named, finite figures that depend on the samples alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from ganlab import Dataset, Evaluator
from ganlab.commands import plugin_code
from ganlab.engine import given_rows, optional
from ganlab.errors import IncompatibleError
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import Conformance, check, fail

# The number of examples whose labels are read to find some of each class.
_LABELLED = 4096


class _Samples:
    """Stands in for a generator, and draws the dataset's own examples; a conditional one if the dataset has classes.

    Attributes:
        classes: How many classes it distinguishes; None for an unconditional one.
    """

    def __init__(self, dataset: Dataset, further: dict[str, Any]) -> None:
        self._dataset, self._further, self.classes = dataset, further, dataset.classes

    def __call__(
        self,
        n: int,
        seed: int,
        labels: Sequence[int] | np.ndarray | None = None,
        *,
        start: int = 0,
        conditions: np.ndarray | None = None,
        source: np.ndarray | None = None,
    ) -> np.ndarray:
        """Samples, `(n, *sample_shape)` float32, of these classes, whatever else is asked."""
        del conditions, source
        numbers = np.arange(start, start + n) if labels is None else self._of_classes(labels)
        return np.array(self._dataset.examples(tf.constant(numbers, tf.int64), seed + 1))

    def latents(self, n: int, seed: int, start: int = 0) -> tf.Tensor:
        """Normal latent vectors, `(n, 8)` float32."""
        return tf.random.stateless_normal([start + n, 8], [seed, 0])[start:]

    def from_latents(
        self, latents: tf.Tensor | np.ndarray, labels: Sequence[int] | np.ndarray | None = None, **given: Any
    ) -> np.ndarray:
        """Examples, moved a little by the latent vectors, `(n, *sample_shape)` float32."""
        moved = 1e-2 * np.mean(latents, axis=1, dtype=np.float32).reshape(-1, *[1] * len(self._dataset.sample_shape))
        return np.asarray(self(len(latents), 0, labels, **given) + moved)

    def given(self, n: int, seed: int, start: int = 0) -> dict[str, np.ndarray]:
        """The labels, conditions and sources of those examples, as far as there are some."""
        numbers = tf.range(start, start + n, dtype=tf.int64)
        return {
            name: np.asarray(optional.call(getattr(of, method), numbers, seed=seed + 1))
            for name, (of, method, *_) in given_rows(self._dataset).items()
        }

    def networks(self) -> dict[str, Any]:
        """The author's, and a way back from examples to sources, all zero, where there are sources."""
        if (shape := self._dataset.source_shape) is None:
            return _Networks(self._further)
        x = keras.Input(self._dataset.sample_shape)
        made = keras.layers.Dense(math.prod(shape), kernel_initializer="zeros")(keras.layers.Flatten()(x))
        model = keras.Model(x, keras.layers.Reshape(shape)(made))
        return _Networks(back=(model, lambda rows: model(rows).numpy()), **self._further)

    def _of_classes(self, labels: Sequence[int] | np.ndarray) -> list[int]:
        """The number of an example of each class, or of any where the dataset's first have none of it."""
        count = min(_LABELLED, self._dataset.size or _LABELLED)
        labels_of_data = np.asarray(optional.call(self._dataset.labels, tf.range(count, dtype=tf.int64), seed=0))
        having = {label: np.flatnonzero(labels_of_data == label) for label in set(labels)}
        rows = [having[label] for label in labels]
        return [int(own[i % len(own)]) if len(own) else 0 for i, own in enumerate(rows)]


class _Networks(dict[str, Any]):
    """Networks by name, of which an architecture may have others."""

    def __missing__(self, name: str) -> Any:
        raise IncompatibleError(f"It calls the network {name!r}: return it from the method networks(self).")


class EvaluatorConformance(Conformance):
    """Checks an evaluator against its contract, on samples of the dataset itself.

    class TestMine(EvaluatorConformance):
        def make(self):
            return Mine(samples=100)

    Attributes:
        sample_shape: The shape of an example; None for points in the plane or, if it refuses those, small images.
    """

    kind, role = "evaluators", Evaluator
    sample_shape: tuple[int, ...] | None = None

    def dataset(self) -> Dataset:
        """The data to evaluate on: four Gaussians in the plane; override it if the evaluator needs other data."""
        return parts.dataset(self.sample_shape or (2,))

    def networks(self) -> dict[str, Any]:
        """Further networks for `sample.networks()`; override it if the evaluator calls some by name."""
        return {}

    def _evaluation(self) -> tuple[Dataset, dict[str, float]]:
        """The figures of the dataset, or of small images if it is refused and the author chose no other."""
        own = self.dataset()
        chosen = self.sample_shape or type(self).dataset is not EvaluatorConformance.dataset
        for dataset in () if chosen else (own, parts.Images(), parts.LabelledPoints(), parts.Given(own)):
            try:
                return dataset, self._evaluated(dataset)
            except IncompatibleError:
                continue
        return own, self._evaluated(own)

    def _first(self) -> tuple[Dataset, dict[str, float]]:
        """The first evaluation, which the tests share: one may take minutes."""
        try:
            return self.once("first", self._evaluation)
        except IncompatibleError as error:
            pytest.skip(f"It does not accept the kit's samples: {error} Override dataset(self) with data it accepts.")

    def _evaluated(self, dataset: Dataset) -> dict[str, float]:
        evaluator = self.make()

        with plugin_code(type(evaluator).__name__, "evaluate"):
            return evaluator.evaluate(_Samples(dataset, self.networks()), dataset, None)

    @check(first=True)
    def test_figures_have_names_and_are_finite(self) -> None:
        """`evaluate` returns a dict of finite numbers by name, also without a run."""
        _, figures = self._first()
        if not isinstance(figures, dict) or not figures:
            fail(f"evaluate returned {figures!r}; it must return a dict of named numbers.")
        for name, value in figures.items():
            if not isinstance(name, str) or not np.isscalar(value) or not np.isfinite(value):
                fail(f"evaluate returned {name!r}: {value!r}; it must be a finite number under a name.")

    @check()
    def test_figures_are_within_their_limits(self) -> None:
        """`limits` and `better` name figures, and each is within its limits but for rounding."""
        (dataset, figures), evaluator = self._first(), self.make()
        limits = evaluator.limits(dataset)
        for of, names in (("limits", limits), ("better", evaluator.better)):
            if names and not set(names) & figures.keys():
                fail(f"{of} names {', '.join(names)}, none of which is a figure: {', '.join(figures)}.")
        for name in limits.keys() & figures.keys():
            (low, high), value = limits[name], figures[name]
            room = 1e-6 * max(1.0, abs(value))
            if not low - room <= value <= high + room:
                fail(f"{name} is {value!r}, outside of its limits {low!r} and {high!r}.")

    @check()
    def test_the_same_samples_give_the_same_figures(self) -> None:
        """Evaluated again, by another object, the figures are the same."""
        dataset, one = self._first()
        other = self._evaluated(dataset)
        if one.keys() != other.keys() or any(one[name] != other[name] for name in one):
            fail(
                f"The same samples gave {one} and then {other}. Call sample(n, seed) with a fixed seed, and seed every "
                "other source of random numbers."
            )
