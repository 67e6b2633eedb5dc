"""Conformance of architectures: shapes, seeds, rows, penalties on gradients, replicas."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import tensorflow as tf

from ganlab import Architecture, Batch, Constraint, Dataset, Loss, functional
from ganlab.engine import (
    SCORE,
    Draws,
    Network,
    ReplicaView,
    build_networks,
    given_rows,
    latents_of_samples,
    noise,
    read,
)
from ganlab.errors import GanlabError, IncompatibleError
from ganlab_verify import lab
from ganlab_verify.derivatives import moved
from ganlab_verify.testing import parts
from ganlab_verify.testing.conformance import check, fail
from ganlab_verify.testing.critic_bench import Bench
from ganlab_verify.testing.finite import gradients
from ganlab_verify.testing.trained import TrainedConformance

# The shapes that are tried if the author sets none.
_SHAPES = ((2,), (32, 32, 3), (28, 28, 1), (16, 16, 1), (64, 64, 3))
_KINDS: tuple[noise.Kind, ...] = ("uniform", "normal")
_CLASSES = 3  # of the examples for a conditional architecture


class ArchitectureConformance(TrainedConformance):
    """Checks an architecture against its contract.

        class TestMine(ArchitectureConformance):
            sample_shape = (32, 32, 3)

            def make(self):
                return Mine(width=8)

    Make it as narrow as possible: it is trained several times.

    Attributes:
        sample_shape: The shape of the samples; None for the first of (2,) and some sizes of images that it accepts.
        fixed_generator: Whether the generator has nothing to train.
        bounded_images: Whether the generator's images lie in [-1, 1]. Where they do not, whoever shows or measures them
            cuts them off there, and the critic sees that they go beyond.
    """

    kind, role = "architectures", Architecture
    sample_shape: tuple[int, ...] | None = None
    fixed_generator: bool = False
    bounded_images: bool = True
    _cause: ClassVar[str] = (
        "a layer mixes the examples of its replica (unsynchronized statistics), or draws its own noise. Use "
        "ganlab.layers for noise, and BatchNormalization(synchronized=True) or ganlab.layers.LayerNormalization."
    )

    def loss(self) -> Loss | None:
        """The loss to train it with, for one with networks that a loss calls by name; None for the kit's."""
        return None

    def _parts(self) -> dict[str, Any]:
        architecture = self.make()
        dataset = _examples(architecture, self._shape)
        settings: dict[str, Any] = {"architecture": architecture, "dataset": dataset, "batch_size": 4}
        if (loss := self.loss()) is not None:
            settings |= {"loss": loss, "constraints": [Constraint()]}
        elif len(self._networks) > 2 or not (self._networks["critic"].input_shape or self._networks["critic"].given):
            pytest.skip("Only a loss that calls its networks by name trains it: return one from the method loss.")
        # Batch normalization does not work under a penalty that takes each example alone.
        return settings | ({"constraints": []} if self._networks["critic"].synchronizes else {})

    @property
    def _shape(self) -> tuple[int, ...]:
        return self.once("shape", lambda: self.sample_shape or self._accepted())

    def _accepted(self) -> tuple[int, ...]:
        refusals: dict[str, None] = {}
        for shape in _SHAPES:
            try:
                _built(self.make(), shape)
            except GanlabError as error:
                refusals[str(error)] = None
            else:
                return shape
        raise IncompatibleError(
            f"It accepts none of the sample shapes {_SHAPES}; if it makes others, set sample_shape. Its errors: "
            f"{' '.join(refusals)}"
        )

    @property
    def _networks(self) -> dict[str, Network]:
        return self.once("networks", lambda: _built(self.make(), self._shape))

    @check(first=True)
    def test_networks_have_their_shapes(self) -> None:
        """A generator and a critic of the right shapes, of layers that are right under replicas."""
        _ = self._networks

    @check()
    def test_the_seed_decides_the_weights(self) -> None:
        """Built again with the same seed, by another object, the networks have the same names and bits."""
        again = _built(self.make(), self._shape)
        for role, one in self._networks.items():
            a, b = ({name: v.numpy() for name, v in network.weights.items()} for network in (one, again[role]))
            if list(a) != list(b):
                fail(f"Built twice, the {role}'s weights are named {list(a)} and {list(b)}: names must not change.")
            if bad := [name for name in a if not np.array_equal(a[name], b[name])]:
                fail(
                    f"Built twice with one seed, the {role}'s {bad[:3]} are not the same: they are drawn by something "
                    "that keras.utils.set_random_seed does not set. Use Keras initializers without their own seed."
                )

    @check()
    def test_samples_are_what_datasets_have(self) -> None:
        """The generator's samples are finite, and images lie in [-1, 1], unless they are not bounded."""
        samples = self._output(self._networks["generator"], self._latent(64), training=False).numpy()
        if not np.isfinite(samples).all():
            fail("The generator's samples are not finite.")
        if self.bounded_images and len(self._shape) == 3 and np.abs(samples).max() > 1:
            fail(
                f"The generator's images reach {np.abs(samples).max():.3g}; they must lie in [-1, 1]: end in tanh, "
                "or set bounded_images = False where the method's images have no bounds."
            )

    @check()
    def test_coupled_samples_are_distributed_as_the_generators(self) -> None:
        """Where `coupled` gives samples, these are a pure function of number and seed, with the generator's moments."""
        count = 4096
        numbers = tf.range(2**40, 2**40 + count, dtype=tf.int64)
        coupled = getattr(self.make(), "coupled", None)
        given = None if coupled is None else coupled(numbers, 0)
        if given is None:
            pytest.skip("It has no coupled samples.")
        latents = np.asarray(given)
        if latents.shape != (count, *self._shape) or latents.dtype != np.float32:
            fail(
                f"coupled returns {latents.dtype} of shape {latents.shape}; it must be float32, "
                f"{(count, *self._shape)}."
            )
        if not np.array_equal(np.asarray(self.make().coupled(numbers[7:9], 0)), latents[7:9]):
            fail("coupled gives other samples for the same numbers and seed; it must be a pure function of them.")
        drawn = self._output(self._networks["generator"], self._latent(count), training=False).numpy()
        for power in (1, 2):
            one, other = (np.power(x.reshape(count, -1).astype(np.float64), power) for x in (latents, drawn))
            error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / count)
            apart = np.abs(one.mean(axis=0) - other.mean(axis=0))
            # Six standard errors: with thousands of values a chance deviation is still one in a hundred thousand.
            if (apart > 6.0 * error + 1e-6).any():
                fail(
                    f"Coupled samples are not distributed as the generator's: the mean of power {power} differs by "
                    f"{apart.max():.3g}, where chance explains {error[apart.argmax()]:.3g}."
                )

    @check()
    def test_latents_belong_to_rows(self) -> None:
        """Where it has a prior of its own, row i of the latent vectors is a function of row i of random numbers."""
        shape = 6, int(self.make().latent_dim)
        given = [noise.whole(kind, shape, seed=0, stream=noise.LATENT, number=i) for i, kind in enumerate(_KINDS)]
        whole, half = (np.asarray(self.make().latent(*(x[:n] for x in given))) for n in (6, 3))
        if whole.shape != shape or not np.allclose(whole[:3], half, rtol=1e-6, atol=1e-6):
            fail("latent gives other rows for fewer rows: a latent vector may depend on its own row's numbers alone.")

    @check()
    def test_rows_are_independent(self) -> None:
        """In training, row i of the critic's scores depends on example i alone, or on those of its pack (`packing`)."""
        critic = self._networks["critic"]
        if not critic.input_shape:
            pytest.skip("The critic has inputs beside examples, or others.")
        if critic.synchronizes:
            pytest.skip(f"{critic.synchronizes} mixes examples over all replicas; no constraint on examples allows it.")
        pack = self.make().packing
        x = _examples(self.make(), self._shape).examples(tf.range(4 * pack, dtype=tf.int64), 0)
        whole = self._output(critic, x).numpy()
        other = self._output(critic, tf.concat([-x[:1], x[1:]], axis=0)).numpy()
        if not np.allclose(other[pack:], whole[pack:], rtol=1e-4, atol=1e-5 * np.abs(whole).max()):
            fail(
                "A score of the critic changes when another example of the batch does: a layer mixes examples. Use "
                "layers that normalize each example alone, for example ganlab.layers.LayerNormalization."
            )

    @check()
    def test_labels_change_the_outputs(self) -> None:
        """Where it takes labels, another label changes a sample, and a score unless the critic returns more than it."""
        if not self.make().conditional:
            pytest.skip("It takes no labels.")
        examples = _examples(self.make(), self._shape).examples(tf.range(4, dtype=tf.int64), 0)
        for role, x in (("generator", self._latent(4)), ("critic", examples)):
            one, other = (self._outputs(self._networks[role], x, of=shift, moving=True) for shift in (0, 1))
            if isinstance(one, dict) and set(one) > {SCORE}:
                continue  # a classifier's critic gives labels, and takes none
            one, other = (np.asarray(y[SCORE] if isinstance(y, dict) else y) for y in (one, other))
            if np.allclose(one, other, rtol=1e-6, atol=1e-6 * np.abs(one).max()):
                fail(
                    f"The {role}'s output is the same for another label, also with other weights than its first: the "
                    "labels are ignored. Use them in both networks, have the critic return logits for a loss that "
                    "compares them with the labels, or leave out conditional = True."
                )

    @check()
    def test_conditions_and_sources_change_the_outputs(self) -> None:
        """Where a network takes conditions or a source, other ones change a sample, or a score."""
        taking = {role: network.given for role, network in self._networks.items() if network.given}
        if not taking:
            pytest.skip("It takes no conditions and no source.")
        examples = _examples(self.make(), self._shape).examples(tf.range(4, dtype=tf.int64), 0)
        for role, names in taking.items():
            x = self._latent(4) if role == "generator" else examples
            one = self._outputs(self._networks[role], x, moving=True)
            for name in names:
                other = self._outputs(self._networks[role], x, of=1, moving=True, only=name)
                a, b = (np.asarray(y[SCORE] if isinstance(y, dict) else y) for y in (one, other))
                if np.allclose(a, b, rtol=1e-6, atol=1e-7):
                    fail(f"The {role}'s output is the same for another {name}: use that input, or leave it out.")

    @check()
    def test_penalties_on_gradients_can_be_taken(self) -> None:
        """The critic can be differentiated twice, and finite gradients reach both networks."""
        self._check_gradients()

    @check()
    def test_finite_in_mixed_bfloat16(self) -> None:
        """The same if it computes in bfloat16."""
        self._check_gradients(precision="mixed_bfloat16")

    def _check_gradients(self, **settings: Any) -> None:
        if not (self._networks["critic"].input_shape or self._networks["critic"].given):
            pytest.skip("A critic with inputs beside examples does not work with a penalty on gradients.")
        if self._networks["critic"].synchronizes:
            pytest.skip("A critic with batch normalization does not work with a penalty on gradients.")
        roles = ("critic",) if self.fixed_generator else ("critic", "generator")
        for problem in gradients(Bench(self._experiment(**settings)), of="the networks' layers", roles=roles):
            fail(f"Under a penalty on the critic's slope: {problem}")

    def _latent(self, n: int) -> tf.Tensor:
        return latents_of_samples(self.make(), n, seed=0)

    def _output(self, network: Network, x: tf.Tensor, *, training: bool = True) -> tf.Tensor:
        y = self._outputs(network, x, training=training)
        return y[SCORE] if isinstance(y, dict) else y

    def _outputs(
        self,
        network: Network,
        x: tf.Tensor,
        *,
        training: bool = True,
        of: int = 0,
        moving: bool = False,
        only: str = "",
    ) -> Any:
        """The outputs of a network for labels shifted by `of`, or for other rows of what `only` names.

        With `moving`, for other weights than the first.
        """
        draws = Draws(0, x.shape[0], tf.constant(0, tf.int64), tf.constant(0, tf.int32))
        view = ReplicaView("network", noise.LAYERS, draws, None)
        weights = read(network.weights)
        if moving:  # scales and embeddings may begin at zero
            weights = moved({name: value.numpy() for name, value in weights.items()}, list(weights))
        given = {"labels": (_labels(x.shape[0]) + (0 if only else of)) % _CLASSES}
        data = _examples(self.make(), self._shape)
        for name, (_, method, *_rest) in given_rows(data).items():
            if name != "labels":
                numbers = tf.range(x.shape[0], dtype=tf.int64) + (1000 * of if name == only else 0)
                given[name] = getattr(data, method)(numbers, 0)
        return network(x, weights, read(network.buffers), given=given, noise=view, training=training)[0]


class _Noise(Dataset):
    """Numbers of any shape within [-1, 1]."""

    def __init__(self, sample_shape: tuple[int, ...]) -> None:
        self.sample_shape = sample_shape

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers."""
        width = int(np.prod(self.sample_shape))
        flat = 2.0 * functional.example_uniform(numbers, width, seed) - 1.0
        return tf.reshape(flat, [-1, *self.sample_shape])


class _Labelled(_Noise):
    """The same with labels."""

    classes = _CLASSES

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes in turn."""
        return tf.cast(numbers, tf.int64) % _CLASSES


def _labels(n: int) -> tf.Tensor:
    return tf.range(n, dtype=tf.int64) % _CLASSES


def _examples(architecture: Architecture, shape: tuple[int, ...]) -> Dataset:
    """Examples for an architecture, with labels if it takes them, and with conditions and sources."""
    return parts.Given((_Labelled if architecture.conditional else _Noise)(shape))


def _built(architecture: Architecture, shape: tuple[int, ...]) -> dict[str, Network]:
    dataset = _examples(architecture, shape)
    return build_networks(lab.experiment(architecture=architecture, dataset=dataset, batch_size=4, loss=_AnyCritic()))


class _AnyCritic(parts.Wasserstein):
    """A loss that leaves open what a critic takes, for networks that are built and not trained."""

    def scores(self, batch: Batch, networks: Any) -> None:
        """The critic's own."""
