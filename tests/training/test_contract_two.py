"""Labels, losses over the global batch, constraints on the generator, augmentations and microbatches."""

import re

import contract_two as plugin
import keras
import numpy as np
import pytest
import tensorflow as tf
from small import Layers, assert_same, constraint, sgd, small, trained

import ganlab
from ganlab.training.graph.inputs import OF_GENERATOR, Inputs
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


def whole(**parts):
    """Everything that contract 2 added, in one experiment."""
    return {
        **plugin.parts(),
        "loss": plugin.Everything(),
        "generator_batch_size": 24,
        "critic_steps": 2,
        **parts,
    }


def in_parts(**parts):
    return whole(loss=plugin.Local(), batch_size=24, **parts)


@pytest.fixture(scope="module")
def one(cpus):
    return trained(0, count=4, **whole())


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 4])
def test_everything_trains_the_same_on_any_number_of_replicas(one, replicas):
    assert_same(one, trained(replicas, count=4, **whole()), rtol=3e-5, atol=3e-6)
    assert one.values["loss/state/gap"] < 1e-5  # the critic that a loss sees in advance is the one that scored


@pytest.mark.slow
def test_every_part_has_an_effect(one):
    for changed in (
        {"generator_constraints": []},
        {"augmentations": []},
        {"constraints": []},
        {"generator_batch_size": None},
    ):
        other = trained(0, count=4, **whole(**changed))
        names = [name for name in one.values if "/weights/" in name]
        assert any(not np.allclose(one.values[name], other.values[name], rtol=1e-4) for name in names), changed


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "parts"), [(0, 4), (2, 2), (2, 4)])
def test_microbatches_train_as_one_batch(replicas, parts):
    straight = trained(0, count=4, **in_parts())
    assert_same(straight, trained(replicas, count=4, **in_parts(microbatches=parts)), rtol=3e-5, atol=3e-6)


@pytest.mark.slow
def test_compiled_equals_uncompiled(one):
    assert_same(one, trained(0, count=4, **whole(jit="on")), rtol=3e-5, atol=3e-6)
    parts = trained(0, count=4, **in_parts(microbatches=2))
    assert_same(parts, trained(0, count=4, **in_parts(microbatches=2, jit="on")), rtol=3e-5, atol=3e-6)


def test_labels_are_those_of_the_examples():
    experiment = small(2, architecture=plugin.Conditional(), loss=plugin.Local())
    inputs, ring = Inputs(experiment), experiment.dataset
    for step in range(3):
        for replica in range(2):
            found = inputs.of(tf.constant(step, tf.int64), replica)
            numbers = tf.reshape(inputs.numbers(tf.constant(step, tf.int64), replica), [1, -1])
            np.testing.assert_array_equal(found["labels"], ring.labels(numbers[0])[None])
            # The ring's modes are its classes: the label of a point is the mode that it lies at.
            distances = np.linalg.norm(found["real"].numpy()[0][:, None] - ring.modes[None], axis=2)
            np.testing.assert_array_equal(distances.argmin(1), found["labels"][0])
            paired, labels = found[f"{OF_GENERATOR}real"].numpy(), found[f"{OF_GENERATOR}labels"].numpy()
            np.testing.assert_array_equal(np.linalg.norm(paired[:, None] - ring.modes[None], axis=2).argmin(1), labels)
            assert not np.array_equal(labels, found["labels"][0])


def test_generator_order_is_another_permutation_of_a_finite_set():
    digits = ganlab.component("datasets", "digits")()
    inputs = Inputs(small(0, dataset=digits, batch_size=599))  # 1797 digits, a third each
    steps = [tf.constant(step, tf.int64) for step in range(3)]
    critic = np.concatenate([inputs.numbers(step, 0) for step in steps])
    generator = np.concatenate([inputs.numbers(step, 0, "generator") for step in steps])
    np.testing.assert_array_equal(np.sort(critic), np.arange(1797))
    np.testing.assert_array_equal(np.sort(generator), np.arange(1797))
    assert (critic == generator).mean() < 0.01


@pytest.mark.slow
def test_microbatches_of_large_networks_train_for_several_steps():
    # TensorFlow keeps sums of three large tensors in temporary variables, which fail in a loop that runs a second time.
    wide = ganlab.component("architectures", "mlp")(width=2048, depth=2)
    parts = {"architecture": wide, "constraints": [constraint("gradient_penalty")], "optimizer": sgd(1e-5)}
    whole, split = (Trainer(small(0, microbatches=k, batch_size=8, **parts)) for k in (1, 4))
    for _ in range(2):
        np.testing.assert_allclose(whole.train(1), split.train(1), rtol=1e-5, atol=1e-6)


def test_spectral_norm_constrains_the_generator():
    one = trained(0, count=4, generator_constraints=[constraint("spectral_norm")])
    state = one.trainer.state
    effective = state.sampling_weights()
    kernels = [w.numpy() for name, w in effective.items() if name.endswith("kernel")]
    assert all(np.linalg.norm(kernel, 2) == pytest.approx(1.0, rel=0.05) for kernel in kernels)


class Witnessed(ganlab.Loss):
    """The Wasserstein game of the sum of an embedding's numbers, from an average of the samples' on."""

    outputs = ("embedding",)

    def witness(self, batch, replica):
        middle = replica.mean(tf.reduce_mean(batch.fake_outputs["embedding"]))
        return lambda outputs: tf.reduce_sum(outputs["embedding"] - middle, axis=1)

    def critic(self, real_scores, fake_scores, batch):
        return tf.reduce_sum(batch.fake_outputs["embedding"] - batch.real_outputs["embedding"], axis=1)

    def generator(self, fake_scores, batch):
        return -tf.reduce_sum(batch.fake_outputs["embedding"], axis=1)


def linear_critic(x):
    return {"score": keras.layers.Dense(1)(x), "embedding": keras.layers.Dense(3, name="embedding")(x)}


def test_a_witness_takes_the_scores_place_in_penalties_and_metrics():
    parts = {
        "loss": Witnessed(),
        "architecture": Layers(critic=linear_critic),
        "constraints": [constraint("gradient_penalty")],
    }
    one = trained(0, count=3, **parts)
    kernel = Trainer(small(0, **parts)).state.critic.weights["embedding/kernel"].numpy()
    slope = np.linalg.norm(kernel.sum(axis=1))
    assert one.metric("constraints/gradient_penalty/slope")[0, 0] == pytest.approx(slope, rel=1e-5)
    loss, penalty, apart = (one.metric(f"critic/{name}")[0, 0] for name in ("loss", "penalty", "wasserstein"))
    assert loss == pytest.approx(penalty - apart, rel=1e-5)
    assert_same(one, trained(2, count=3, **parts))


def test_a_witness_of_another_shape_is_named():
    class Wide(Witnessed):
        def witness(self, batch):
            return lambda outputs: outputs["embedding"]

    refused(
        "The witness of loss Wide returned the shape (12, 3); it must be one value per example, (12,).",
        loss=Wide(),
        architecture=Layers(critic=linear_critic),
    )


def refused(match, replicas=0, **parts):
    with pytest.raises(ganlab.GanlabError, match=re.escape(match)):
        trained(replicas, count=1, **parts)


def test_labels_and_outputs_that_nothing_gives_are_one_error():
    line = ganlab.component("datasets", "swiss_roll")()
    refused(
        "Conditional needs the classes of examples, and datasets.swiss_roll has no labels.",
        dataset=line,
        architecture=plugin.Conditional(),
    )
    refused("Everything needs the classes of examples", dataset=line, loss=plugin.Everything())
    refused("Everything needs 'logits', 'embedding' from the critic", loss=plugin.Everything())


def test_a_wrong_augmentation_is_named():
    class Cut(ganlab.Augmentation):
        def apply(self, x, state, replica):
            return x[:, :1]

    refused("Augmentation cut returned (12, 1), float32; it must return the shape", augmentations=[Cut()])


def test_a_critic_called_with_other_rows_is_named():
    class Halved(ganlab.Constraint):
        def penalty(self, critic, batch, state, replica):
            return tf.concat([critic(batch.real[:7]), critic(batch.real[7:])], axis=0)

    refused("is called with 7 rows where the batch has 12", **whole(constraints=[Halved()]))
