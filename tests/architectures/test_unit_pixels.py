"""Critics of pixels from 0 to 1 in place of [-1, 1]."""

import numpy as np
import pytest
from making import architecture as component


@pytest.mark.parametrize("labels", ["none", "projection"])
def test_critic_sees_pixels_from_zero_to_one(labels):
    inner = component("dcgan", channels=4, labels=labels)
    classes = None if labels == "none" else 3
    critic = component("unit_pixels", architecture=inner).critic((16, 16, 3), classes=classes)
    plain = inner.critic((16, 16, 3), classes=classes)
    assert [v.path for v in critic.trainable_variables] == [v.path for v in plain.trainable_variables]
    for variable, other in zip(critic.trainable_variables, plain.trainable_variables, strict=True):
        other.assign(variable)
    x = np.random.default_rng(0).uniform(-1, 1, (5, 16, 16, 3)).astype(np.float32)
    rest = [np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1]]] if classes else []
    given, changed = ([x, *rest], [(x + 1) / 2, *rest]) if rest else (x, (x + 1) / 2)
    np.testing.assert_allclose(critic(given), plain(changed), rtol=1e-5, atol=1e-6)


def test_generator_is_the_other_architectures():
    inner = component("dcgan", channels=4, latent_dim=5)
    wrapped = component("unit_pixels", architecture=component("latents", architecture=inner))
    assert (wrapped.latent_dim, wrapped.conditional) == (5, False)
    latent = np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32)
    pixels = np.asarray(wrapped.generator((16, 16, 3))(latent))
    assert pixels.min() < -0.1 < 0.1 < pixels.max()  # it still makes images in [-1, 1]
