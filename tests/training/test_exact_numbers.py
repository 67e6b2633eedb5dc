"""Logged losses, by a loop in numpy from the same draws; the weights after many updates: test_turns.py and others."""

import numpy as np
import pytest
import tensorflow as tf
from networks_by_hand import Net, latents
from small import Layers, small, trained

from ganlab.training.graph import noise

pytestmark = pytest.mark.usefixtures("cpus")


def test_losses_are_means_over_each_replicas_examples():
    training = trained(2, count=1, architecture=Layers())
    generator, critic = (Net(training.start, role) for role in ("generator", "critic"))
    moved = Net(training.values, "critic")
    real = small(0).dataset.examples(tf.range(12, dtype=tf.int64), 0).numpy()
    scores = {
        "critic/wasserstein": critic(real) - critic(generator(latents(0, noise.FAKE_LATENT))),
        "critic/loss": critic(generator(latents(0, noise.FAKE_LATENT))) - critic(real),
        "generator/loss": -moved(generator(latents(0, noise.LATENT))),
    }
    for tag, each in scores.items():
        expected = each.reshape(2, 6).mean(axis=1)
        np.testing.assert_allclose(training.metric(tag)[0], expected, rtol=1e-5, atol=1e-6, err_msg=tag)
