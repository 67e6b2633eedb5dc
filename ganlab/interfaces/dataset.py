"""The dataset role: examples as a pure function of their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ganlab.interfaces.optional_parameters import takes_optional

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf


class Dataset:
    """Data by example number, so that every replica, and every resumed run, finds the same examples.

    Attributes:
        sample_shape: The shape of one example: `(height, width, channels)` for images, `(d,)` for vectors.
        size: How many examples there are, or None for a distribution that never ends. A finite set is shuffled anew
            each epoch by the core, which then asks for numbers in `[0, size)`.
        classes: How many classes `labels` distinguishes, or None for examples without labels.
        class_names: Their names, in order; empty if they have none.
        condition_shape: The shape of the conditions of one example, or None for none.
        source_shape: The shape of the source of one example, or None for examples that are not pairs.
    """

    sample_shape: tuple[int, ...]
    size: int | None = None
    classes: int | None = None
    class_names: Sequence[str] = ()
    condition_shape: tuple[int, ...] | None = None
    source_shape: tuple[int, ...] | None = None

    @takes_optional
    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers: a pure function.

        Optional parameter: `epochs`, int64 `(n,)`, how often training has seen the whole set before each of them, for
        examples that vary from one epoch to the next. Give it a default: elsewhere it is left out.

        Traced once and then run by TensorFlow: inside the training loop if it consists of TensorFlow operations, ahead
        of it in `tf.data` if it needs Python (in `tf.numpy_function`) or files. For pictures it is also called eagerly.

        Args:
            numbers: int64, `(n,)`, n static.
            seed: The experiment's seed, for synthetic sets (`ganlab.functional.example_normal` draws by number).

        Returns:
            float32, `(n, *sample_shape)`; images in [-1, 1].
        """
        raise NotImplementedError

    @takes_optional
    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the examples with these numbers: a pure function, for sets with `classes`.

        Optional parameter: `seed`, the experiment's, for synthetic sets whose classes are drawn.

        Args:
            numbers: int64, `(n,)`.

        Returns:
            int64, `(n,)`, each in `[0, classes)`.
        """
        raise NotImplementedError

    def conditions(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The conditions of these examples, float32 `(n, *condition_shape)`: a pure function, for sets with that shape.

        They are what a generator is asked for, for example an energy: beside labels or instead of them.
        """
        raise NotImplementedError

    def sources(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The source of each of these examples, float32 `(n, *source_shape)`: a pure function, for datasets of pairs.

        Sources without partners are the examples of another dataset, `experiment.source`.
        """
        raise NotImplementedError

    def show(self, x: np.ndarray) -> np.ndarray | list[str] | None:
        """Samples as people see them, where they are neither images nor points in the plane.

        From `(n, *sample_shape)` float32: images, `(n, height, width, 1 or 3)` in [-1, 1], for example those of
        `ganlab.pictures.series`, or a text for each sample; None for the picture that suits their shape, if any does.
        """
        del x
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Facts about the data that a resumed run must find unchanged, so that it never silently trains on other data.

        By default the shape, the size, and hashes of some examples and labels (`ganlab.fingerprints.of_examples`),
        which needs no code of your own. A set that reads files can report more in less time: their names, sizes and
        bytes (`ganlab.fingerprints.of_files`).

        Returns:
            Plain values by name, for example numbers, texts and lists of hashes. Leave out times and paths, which may
            differ for the same data.
        """
        from ganlab import fingerprints

        return fingerprints.of_examples(self)
