"""A critic of layers of Lipschitz constant one trains the same on replicas, and its certificate stays one."""

import pytest
from small import assert_same, trained

import ganlab


@pytest.mark.parametrize("convolution", ["aol", "sll", "soc", "bcop"])
@pytest.mark.slow
@pytest.mark.usefixtures("cpus")
def test_two_replicas_train_the_same(convolution):
    parts = {
        "dataset": ganlab.component("datasets", "digits")(),
        "architecture": ganlab.component("architectures", "lip_convnet")(
            channels=2, latent_dim=3, convolution=convolution, generator_normalization="none", generator_kernel_size=2
        ),
    }
    one, two = (trained(replicas, count=3, **parts) for replicas in (0, 2))
    assert_same(one, two, rtol=3e-5, atol=3e-6)
    critic = one.trainer.state.critic.network.model
    assert ganlab.lipschitz.certificate(critic)({v.path: v.numpy() for v in critic.trainable_variables}) == 1.0
