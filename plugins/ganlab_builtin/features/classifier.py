"""A small classifier that is trained on the dataset's own labels: features for data unlike Inception's."""

from __future__ import annotations

import functools
import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.features import network, storing, training

_VERSION = 1  # of the network and its training: files of another are left alone
_BLOCK = 500
_LEARNED = 0.25  # the least fraction of the way from guessing to no mistakes


class Classifier(ganlab.Features):
    """A convolutional network that learns the dataset's classes; features are its last hidden layer.

    It trains when it is first needed, under the strategy in use, and is then kept in a file. Every `hold_out`-th
    example is held out; `held_out_accuracy` is the fraction of those that it classifies correctly. Batches, shifts and
    initial weights follow from `seed` alone, so 1, 2 or N replicas train the same network up to rounding.

    Attributes:
        held_out_accuracy: The accuracy of the network in use; None before `prepare`.
        weights_digest: A hash of its weights; empty before `prepare`.
    """

    def __init__(
        self,
        *,
        updates: Annotated[int, Ge(1)] = 500,
        batch_size: Annotated[int, Ge(1)] = 128,
        learning_rate: Annotated[float, Gt(0)] = 2e-3,
        width: Annotated[int, Ge(1)] = 32,
        features: Annotated[int, Ge(1)] = 64,
        shift: Annotated[int, Ge(0)] = 1,
        hold_out: Annotated[int, Ge(2)] = 5,
        seed: Annotated[int, Ge(0)] = 0,
    ) -> None:
        """Keeps how to train.

        Args:
            updates: The number of updates that the network trains.
            batch_size: Examples of one update over all replicas (the global batch).
            learning_rate: Adam's first rate, which falls to zero.
            width: Channels of the first convolutions.
            features: The length of feature vectors.
            shift: The most pixels that training images are shifted by, at random; 0 for none.
            hold_out: The interval of held-out examples, from number 0 on.
            seed: Decides initial weights, batches and shifts.
        """
        settings = training.Settings(updates, batch_size, learning_rate, width, features, shift, hold_out, seed)
        self._settings = settings
        self.held_out_accuracy: float | None = None
        self.weights_digest = ""
        self._dataset: ganlab.Dataset | None = None
        self._model: Any = None

    def prepare(self, dataset: ganlab.Dataset) -> None:
        """Loads the network of this dataset, or trains it under the strategy in use and keeps it."""
        if dataset is self._dataset:
            return
        settings = self._settings
        _check(dataset, settings.hold_out)
        assert dataset.classes is not None
        measures = {"width": settings.width, "features": settings.features, "seed": settings.seed}
        with tf.distribute.get_strategy().scope():
            model = network.build(tuple(dataset.sample_shape), dataset.classes, **measures)
        path = storing.path("classifier", dataset, {"version": _VERSION, **asdict(settings)})
        stored = storing.load(path)
        accuracy = stored.facts.get("held_out_accuracy") if stored is not None else None
        if stored is not None and isinstance(accuracy, float) and _fits(stored.arrays, model.get_weights()):
            model.set_weights(stored.arrays)
            source, say = f"read from {path}", _say_once
        else:
            storing.check(path)  # before a minute of training, not after
            training_set, _ = training.split(dataset.size or 0, settings.hold_out)
            _say(
                f"training a classifier of {dataset.classes} classes on {len(training_set):,} images, "
                f"{settings.updates} updates. This is done once: it is kept in {path}"
            )
            began = time.monotonic()
            training.train(model, dataset, settings, lambda done: _say(_progress(done, settings.updates, began)))
            accuracy = training.accuracy(model, dataset, settings.hold_out)
            source, say = f"trained in {time.monotonic() - began:.0f} s", _say
            storing.save(path, model.get_weights(), {"held_out_accuracy": accuracy, **asdict(settings)})
        _, held_out = training.split(dataset.size or 0, settings.hold_out)
        say(f"{source}; accuracy {accuracy:.1%} on {len(held_out):,} images that it was not trained on")
        self._dataset, self._model, self.held_out_accuracy = dataset, model, accuracy
        self.weights_digest = hashlib.sha256(b"".join(array.tobytes() for array in model.get_weights())).hexdigest()
        self._run = tf.function(lambda x: model(x, training=False), autograph=False, reduce_retracing=True)

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The last hidden layer, `(n, features)` float32."""
        return self._outputs(x)[0]

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """The class probabilities, `(n, classes)` float32."""
        return np.asarray(tf.nn.softmax(self._outputs(x)[1]))

    def diagnose(self) -> str | None:
        """Reports a network that classifies hardly better than by guessing."""
        if self._dataset is None or self.held_out_accuracy is None:
            return None
        guessing = 1.0 / (self._dataset.classes or 1)
        if self.held_out_accuracy >= guessing + _LEARNED * (1.0 - guessing):
            return None
        return (
            f"features.classifier is as good as untrained: {self.held_out_accuracy:.0%} of its held-out examples are "
            f"right, where guessing gets {guessing:.0%}. Distances between its features mean nothing, and are not "
            f"comparable with those of another network. Raise features.classifier.updates = {self._settings.updates}."
        )

    def _outputs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._model is None:
            raise ganlab.ContractError("features.classifier has no network yet: call prepare(dataset) first.")
        x = np.asarray(x, np.float32)
        parts = [self._run(x[start : start + _BLOCK]) for start in range(0, len(x), _BLOCK)]
        features, logits = zip(*parts, strict=True)
        return np.concatenate(features), np.concatenate(logits)


def _fits(arrays: list[np.ndarray], weights: list[np.ndarray]) -> bool:
    """Whether arrays can be a network's weights: of these shapes and dtypes, and finite."""
    kinds = [[(a.shape, a.dtype) for a in some] for some in (arrays, weights)]
    return kinds[0] == kinds[1] and all(np.isfinite(array).all() for array in arrays)


def _say(text: str) -> None:
    """Prints a line on standard error while the user waits for training."""
    print(f"features.classifier: {text}.", file=sys.stderr, flush=True)


_say_once: Callable[[str], None] = functools.cache(_say)  # for what is the same for each evaluator, as the network is


def _progress(done: int, updates: int, began: float) -> str:
    left = (time.monotonic() - began) * (updates - done) / done
    return f"update {done} of {updates}, about {left:.0f} s left"


def _check(dataset: ganlab.Dataset, hold_out: int) -> None:
    name = type(dataset).__name__
    rule = ""
    if dataset.classes is None:
        rule = "has no labels"
    elif dataset.size is None:
        rule = "never ends, so that no example can be held out"
    elif len(dataset.sample_shape) != 3:
        rule = f"has examples of shape {tuple(dataset.sample_shape)} and not images"
    elif dataset.size <= hold_out:
        rule = f"has {dataset.size} examples, of which every {hold_out}th is held out"
    if rule:
        raise ganlab.IncompatibleError(
            f"features.classifier cannot learn {name}, which {rule}. Use a finite set of images with labels, or "
            "@features.pixels()."
        )
