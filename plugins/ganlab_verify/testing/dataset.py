"""Conformance of datasets: examples as a pure function of their numbers, the same on any number of replicas."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from ganlab import Dataset
from ganlab.commands import plugin_code
from ganlab.engine import Inputs, data_changes, data_of, optional
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import check, fail
from ganlab_verify.testing.trained import TrainedConformance

_SEED = 0


class DatasetConformance(TrainedConformance):
    """Checks a dataset against its contract.

    class TestMine(DatasetConformance):
        def make(self):
            return Mine(size=100)
    """

    kind, role = "datasets", Dataset
    _cause: ClassVar[str] = "examples must depend on their numbers and the seed alone."

    def _parts(self) -> dict[str, Any]:
        return {"dataset": self.make(), "architecture": parts.Networks(parts.flat_critic)}

    @property
    def _numbers(self) -> np.ndarray:
        """A dozen example numbers, the first and the last among them."""
        size = self.make().size
        return np.unique(np.linspace(0, 10**9 if size is None else size - 1, 12).astype(np.int64))

    def _examples(self, numbers: np.ndarray, dataset: Dataset | None = None) -> np.ndarray:
        return self._rows("examples", numbers, dataset)

    def _rows(self, method: str, numbers: np.ndarray, dataset: Dataset | None = None) -> np.ndarray:
        source = self.make() if dataset is None else dataset
        with plugin_code(type(source).__name__, method):
            if method == "labels":
                return np.asarray(optional.call(source.labels, tf.constant(numbers), seed=_SEED))
            return np.asarray(getattr(source, method)(tf.constant(numbers), _SEED))

    def _methods(self, dataset: Dataset) -> list[str]:
        """The methods that give rows: `examples`, and `conditions`, `sources` and `labels` where it declares them."""
        declared: dict[str, Any] = {"examples": dataset.sample_shape, "conditions": dataset.condition_shape}
        declared |= {"sources": dataset.source_shape, "labels": dataset.classes}
        return [name for name, declaration in declared.items() if declaration is not None]

    @check(first=True)
    def test_shapes_and_dtypes(self) -> None:
        """It declares its sizes, and returns float32 rows of them, also when it is traced for training."""
        experiment = self._experiment()
        Inputs(experiment).of(tf.constant(0, tf.int64), 0)
        numbers, shape = self._numbers, tuple(experiment.dataset.sample_shape)
        examples = self._examples(numbers)
        if examples.shape != (len(numbers), *shape) or examples.dtype != np.float32:
            fail(
                f"examples returns {examples.shape}, {examples.dtype}, for {len(numbers)} numbers from {numbers[0]} to "
                f"{numbers[-1]}; it must be {(len(numbers), *shape)}, float32."
            )

    @check()
    def test_labels_are_classes(self) -> None:
        """If it has `classes`, every label is one of them, and there is a name for each or for none."""
        dataset = self.make()
        if dataset.classes is None:
            return
        size = 10**9 if dataset.size is None else dataset.size
        labels = self._rows("labels", np.unique(np.linspace(0, size - 1, 1000).astype(np.int64)), dataset)
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= dataset.classes:
            fail(
                f"labels returns {labels.min()} to {labels.max()}, {labels.dtype}; with classes = {dataset.classes} "
                f"they must be whole numbers from 0 to {dataset.classes - 1}."
            )
        if len(dataset.class_names) not in (0, dataset.classes):
            fail(f"class_names has {len(dataset.class_names)} names for {dataset.classes} classes.")

    @check()
    def test_values_are_finite(self) -> None:
        """Every value is finite, and images lie in [-1, 1]."""
        for method in self._methods(self.make()):
            if not np.isfinite(self._rows(method, self._numbers)).all():
                fail(f"{method} has a value that is not finite.")
        examples = self._examples(self._numbers)
        if examples.ndim == 4 and np.abs(examples).max() > 1:
            fail(
                f"An image has the value {np.abs(examples).max():.4g}; images lie in [-1, 1]: use x / 127.5 - 1 for "
                "bytes."
            )

    @check()
    def test_examples_are_a_pure_function_of_their_numbers(self) -> None:
        """An example is the same in any order, in any batch, at any time, from any object."""
        dataset, numbers = self.make(), self._numbers
        for method in self._methods(dataset):
            rows = self._rows(method, numbers, dataset)
            again = {
                "requested again": self._rows(method, numbers, dataset),
                "requested in another order": self._rows(method, numbers[::-1].copy(), dataset)[::-1],
                "requested alone": np.concatenate([self._rows(method, n, dataset) for n in numbers[:, None]]),
                "made by another object with the same parameters": self._rows(method, numbers),
            }
            for how, others in again.items():
                if not np.allclose(others, rows, rtol=1e-6, atol=1e-6):
                    fail(
                        f"An example differs when {how}. {method}(numbers, seed) must be a pure function: no iterator, "
                        "no counter, no random numbers except those that belong to an example "
                        "(ganlab.functional.example_uniform and example_normal)."
                    )

    @check()
    def test_a_traced_call_gives_the_same(self) -> None:
        """Inside a tf.function, where training calls it, the examples are those of an eager call."""
        numbers = self._numbers
        dataset = self.make()
        traced = tf.function(lambda n: dataset.examples(n, _SEED), autograph=False)
        if not np.allclose(traced(tf.constant(numbers)), self._examples(numbers), rtol=1e-5, atol=1e-6):
            fail("Traced by TensorFlow, the examples differ: its Python code ran only once, when it was traced.")

    @check()
    def test_the_fingerprint_repeats(self) -> None:
        """Two objects of the same parameters have the same fingerprint of plain values, which resuming a run needs."""
        changes = data_changes(data_of(self.make()), data_of(self.make()))
        if changes:
            fail(
                f"Two objects of the same parameters have different fingerprints ({changes[0]}). No run could be "
                "resumed: fingerprint() must contain neither times nor paths nor anything random."
            )

    @check()
    def test_exact_samples(self) -> None:
        """If there is an `exact_sample`, it returns samples of the shape of examples."""
        dataset: Any = self.make()
        if hasattr(dataset, "exact_sample"):
            shape = np.asarray(dataset.exact_sample(5, 0)).shape
            if shape != (5, *dataset.sample_shape):
                fail(f"exact_sample(5, 0) has the shape {shape}; it must be {(5, *dataset.sample_shape)}.")
