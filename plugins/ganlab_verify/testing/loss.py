"""Conformance of losses: per example, in the right direction, finite."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
import tensorflow as tf

from ganlab import Architecture, Batch, Constraint, Dataset, Loss
from ganlab.commands import plugin_code
from ganlab.engine import Draws, Log, ReplicaView, TrainingState, has_own, noise, optional
from ganlab.errors import GanlabError, PluginError
from ganlab_verify import lab
from ganlab_verify.lab import FLOOR
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import check, fail
from ganlab_verify.testing.trained import TrainedConformance

_REAL = np.array([-30.0, -2.0, -0.5, 0.0, 0.5, 2.0, 30.0], np.float32)
_FAKE = np.array([0.3, 20.0, 1.0, 0.0, -1.0, -20.0, -0.1], np.float32)
_CLASSES = 4
_METHODS = ("critic", "generator")


class _Noted(dict[str, Any]):
    """Networks by name; notes the first name that is none of theirs."""

    unknown = ""

    def __missing__(self, name: str) -> Any:
        self.unknown = self.unknown or str(name)
        raise KeyError(name)


class LossConformance(TrainedConformance):
    """Checks a loss against its contract.

    class TestMine(LossConformance):
        def make(self):
            return Mine()

    Attributes:
        sample_shape: The shape of the samples.
        latent_dim: The length of the latent vectors.
    """

    kind, role = "losses", Loss
    sample_shape: ClassVar[tuple[int, ...]] = (2,)
    latent_dim: ClassVar[int] = parts.LATENT
    _cause: ClassVar[str] = "return each example's own loss: the core divides by the global batch size."

    def architecture(self) -> Architecture | None:
        """The architecture to train it with, for a loss that calls networks by name; None for the kit's."""
        return None

    def dataset(self) -> Dataset | None:
        """The data to train it with, for a loss that needs their classes, conditions or sources; None for the kit's."""
        return None

    @property
    def _data(self) -> Dataset:
        return self.dataset() or parts.Given(parts.dataset(self.sample_shape))

    def _parts(self) -> dict[str, Any]:
        loss, dataset = self.make(), self._data
        if (architecture := self.architecture()) is not None:
            return {"loss": loss, "architecture": architecture, "dataset": dataset, "constraints": [Constraint()]}
        if has_own(loss, "scores") or self.once("unknown", self._unknown):
            name = self.once("unknown", self._unknown)
            called = f"calls the network {name!r}" if name else "has a critic of other inputs than examples (`scores`)"
            pytest.skip(f"It {called}: return an architecture for it from the method architecture.")
        return self._of_kit(loss, dataset)

    def _of_kit(self, loss: Loss, dataset: Dataset) -> dict[str, Any]:
        if not (loss.labels or loss.outputs):
            networks: Architecture = parts.Networks(parts.critic, self.latent_dim)
            # A loss without a critic compares batches: there is nothing to constrain, and there are no scores.
            constraints: dict[str, Any] = {} if has_own(loss, "critic") else {"constraints": []}
            return {"loss": loss, "architecture": networks, "dataset": dataset, **constraints}
        networks = parts.LabelledNetworks(loss.outputs, self.latent_dim)
        labelled = self.dataset() or parts.Given(parts.LabelledPoints(self.sample_shape))
        return {"loss": loss, "architecture": networks, "dataset": labelled}

    def _unknown(self) -> str:
        """The first network that it calls by name and the kit does not have; empty if there is none."""
        loss = self.make()
        if not any(optional.takes(getattr(loss, name), "networks") for name in _METHODS):
            return ""
        made = self._of_kit(loss, self._data)
        state, noted = TrainingState(lab.experiment(**{"constraints": [], **made})), _Noted()
        with contextlib.suppress(GanlabError):  # the tests tell of other mistakes
            self._of(loss, tf.constant(_REAL), tf.constant(_FAKE), state=state, noted=noted)
        return noted.unknown

    def _losses(self, real: np.ndarray = _REAL, fake: np.ndarray = _FAKE, changed: float = 0.0) -> dict[str, tf.Tensor]:
        return self._of(self.make(), tf.constant(real), tf.constant(fake), changed)

    def _of(
        self,
        loss: Loss,
        real: tf.Tensor,
        fake: tf.Tensor,
        changed: float = 0.0,
        *,
        state: TrainingState | None = None,
        noted: _Noted | None = None,
    ) -> dict[str, tf.Tensor]:
        """Both losses, of one replica's scores and of outputs that are the same for a row in every call.

        Args:
            loss: The loss.
            real: Scores of real examples.
            fake: Scores of samples.
            changed: What is added to the last row of every other output, and of the examples.
            state: Has the networks that it may call; by default those of its experiment.
            noted: Takes the networks, and notes a name that is none of them.
        """
        rows = int(real.shape[0])
        draws = Draws(0, rows, tf.constant(0, tf.int64), tf.constant(0, tf.int32))
        batch = self._batch(loss, rows, changed)
        values = {k: tf.convert_to_tensor(v) for k, v in loss.initial_state().items()}
        name, scores = (
            type(loss).__name__,
            {"critic": [real, fake], "generator": [fake, *([real] if loss.pairs else [])]},
        )
        if not has_own(loss, "critic"):
            scores = {"generator": []}
        networks: Mapping[str, Any] = self._networks(loss, draws, batch, state)
        if noted is not None:
            noted.update(networks)
            networks = noted
        losses = {}
        for method, given in scores.items():
            view = ReplicaView(name, noise.CRITIC_LOSS, draws, Log(), kind="losses")
            with plugin_code(name, method):
                others = {"batch": batch, "replica": view, "state": values, "networks": networks}
                value = optional.call(getattr(loss, method), *given, **others)
                losses[method] = tf.convert_to_tensor(value)
        return losses

    def _networks(self, loss: Loss, draws: Draws, batch: Batch, state: TrainingState | None) -> Mapping[str, Any]:
        """The networks of its architecture with the batch's rows, if it calls some by name."""
        if not any(optional.takes(getattr(loss, name), "networks") for name in _METHODS):
            return {}
        state = state or TrainingState(self._experiment(plain=True))
        given = {name: getattr(batch, name) for name in ("labels", "conditions", "source", "latent")}
        rows = {name: value for name, value in given.items() if value is not None}
        return state.networks(draws, state.values(), rows, noise.LAYERS)

    @check(first=True)
    def test_shapes_and_dtypes(self) -> None:
        """One float32 value for each example."""
        try:
            losses = self._losses()
        except PluginError as error:
            others = sorted({*self.make().outputs} - {"score", "logits"})
            if not others or self.architecture() is not None:
                raise
            pytest.skip(
                f"The kit's critic gives {', '.join(others)} of 8 numbers. If yours differs, return an "
                f"architecture from the method architecture: {error}"
            )
        for method, value in losses.items():
            if value.shape != _REAL.shape or value.dtype != tf.float32:
                fail(
                    f"{method} returns the shape {tuple(value.shape)}, {value.dtype.name}, for {len(_REAL)} scores; it "
                    f"must be ({len(_REAL)},), float32. Do not reduce over the batch: the core divides by its size."
                )

    @check()
    def test_rows_are_independent(self) -> None:
        """Row i depends on the scores of row i alone, or on statistics that do not depend on how a batch is split."""
        whole = self._losses()
        other = self._losses(
            np.append(_REAL[:-1], 1.0).astype(np.float32), np.append(_FAKE[:-1], 2.0).astype(np.float32), 1.0
        )
        for method, value in whole.items():
            if not np.allclose(other[method][:-1], value[:-1], rtol=1e-6, atol=1e-6):
                if self._on_two() is None:
                    pytest.skip(
                        f"{method} takes statistics over the batch of all replicas: two train as one device does."
                    )
                fail(
                    f"{method}: the loss of an example changes when another example's scores do, and two replicas do "
                    "not train as one device does. Take each score alone, or reduce statistics over replicas, with "
                    "replica.mean, sum, max or gather; a plain mean covers only the replica's batch."
                )

    @check()
    def test_the_same_scores_give_the_same_losses(self) -> None:
        """One object gives the same losses in every call."""
        loss, scores = self.make(), (tf.constant(_REAL), tf.constant(_FAKE))
        calls = [self._of(loss, *scores) for _ in range(4)]
        if any(not np.array_equal(value, calls[0][name]) for each in calls for name, value in each.items()):
            fail("The same scores gave other losses later. Take noise from replica, and keep state by initial_state.")

    @check()
    def test_values_and_gradients_are_finite(self) -> None:
        """Values and gradients are finite even for scores of plus and minus 30, where probabilities round to 0 or 1."""
        loss, real, fake = self.make(), tf.constant(_REAL), tf.constant(_FAKE)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((real, fake))
            values = self._of(loss, real, fake)
        for method, value in values.items():
            slopes = tape.gradient(value, (real, fake), unconnected_gradients="zero")
            if not all(np.isfinite(x).all() for x in (value, *slopes)):
                fail(
                    f"{method} is not finite, or its gradient is not, for scores like {_REAL[0]:g} and "
                    f"{_FAKE[1]:g}. Use functions that are safe for large scores: tf.nn.softplus, "
                    "tf.nn.sigmoid_cross_entropy_with_logits."
                )

    @check()
    def test_the_critic_wants_real_scores_higher(self) -> None:
        """The critic's loss falls as real scores rise above fake ones, the generator's as its fakes score higher."""
        high, low = np.full(3, 0.5, np.float32), np.full(3, -0.5, np.float32)
        right, wrong = self._losses(high, low), self._losses(low, high)
        rises = {method: float(np.mean(wrong[method]) - np.mean(right[method])) for method in right}
        rises["generator"] *= -1.0
        # A loss without a critic has no scores, and a sliced distance is the same with real and fake exchanged.
        compared = self._compared(high, low)
        directed = [method for method, rise in rises.items() if compared[method] and abs(rise) > FLOOR]
        if "critic" in directed and rises["critic"] < 0:
            fail(
                "critic is not lower where real examples score 0.5 and fakes -0.5 than the other way round. ganlab's "
                "critics score real examples higher: reverse the sign."
            )
        if "generator" in directed and rises["generator"] < 0:
            fail("generator is not lower where fakes score 0.5 than where they score -0.5: reverse the sign.")
        if not directed:
            pytest.skip("Neither method prefers higher scores of real examples or of samples to lower ones.")

    def _compared(self, real: np.ndarray, fake: np.ndarray) -> dict[str, bool]:
        """Whether each method judges by scores: all but one that takes a batch, and leaves a kind's scores alone."""
        loss, scores = self.make(), (tf.constant(real), tf.constant(fake))
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(scores)
            values = self._of(loss, *scores)
        needed = {"critic": scores, "generator": scores[1:]}
        return {
            method: not optional.takes(getattr(loss, method), "batch")
            or all(tape.gradient(value, x) is not None for x in needed[method])
            for method, value in values.items()
        }

    def _shape_of(self, output: str) -> tuple[int, ...]:
        """The shape of an output of the critic: that of its own architecture, if it has one."""
        if (architecture := self.architecture()) is None:
            return (self._classes if output == "logits" else 8,)
        shapes = {name: getattr(self._data, name) for name in ("condition_shape", "source_shape")}
        made = functools.partial(optional.call, architecture.critic, self._data.sample_shape, classes=self._classes)
        return tuple(self.once("critic", functools.partial(made, **shapes)).output[output].shape[1:])

    @property
    def _classes(self) -> int:
        return self._data.classes or _CLASSES

    def _batch(self, loss: Loss, rows: int, changed: float) -> Batch:
        """A batch of labels, outputs and examples for a loss."""
        random, architecture, data = np.random.default_rng(0), self.architecture(), self._data

        def drawn(*shape: int) -> tf.Tensor:
            values = random.normal(size=(rows, *shape)).astype(np.float32)
            values[-1] += changed
            return tf.constant(values)

        def outputs() -> dict[str, tf.Tensor]:
            return {name: drawn(*self._shape_of(name)) for name in loss.outputs if name != "score"}

        real_outputs, fake_outputs = outputs(), outputs()
        return Batch(
            real=drawn(*data.sample_shape),
            fake=drawn(*data.sample_shape),
            labels=tf.range(rows, dtype=tf.int64) % self._classes,
            size=rows,
            step=tf.constant(0, tf.int64),
            latent=tf.zeros([rows, self.latent_dim if architecture is None else int(architecture.latent_dim)]),
            real_outputs=real_outputs,
            fake_outputs=fake_outputs,
            conditions=None if data.condition_shape is None else drawn(*data.condition_shape),
            source=None if data.source_shape is None else drawn(*data.source_shape),
        )
