"""Critics that score packs of examples."""

import numpy as np
import pytest

import ganlab
from ganlab.training.graph.refusals import check_layers


def packed(inner, **arguments):
    made = ganlab.component("architectures", inner)(**arguments)
    return made, ganlab.component("architectures", "packed")(architecture=made, packing=3)


@pytest.mark.parametrize(("inner", "shape"), [("dcgan", (9, 8, 2)), ("mlp", (5,))])
def test_each_example_gets_the_score_of_its_pack(inner, shape):
    made, wrapped = packed(inner, **({"channels": 4} if inner == "dcgan" else {"width": 8}))
    critic, plain = wrapped.critic(shape), made.critic((*shape[:-1], 3 * shape[-1]))
    plain.set_weights(critic.get_weights())
    x = np.random.default_rng(0).uniform(-1, 1, (6, *shape)).astype(np.float32)
    scores = np.asarray(critic(x))
    assert scores.shape == (6, 1)
    packs = np.stack([np.concatenate(list(x[:3]), axis=-1), np.concatenate(list(x[3:]), axis=-1)])
    np.testing.assert_allclose(scores, np.repeat(np.asarray(plain(packs)), 3, axis=0), rtol=1e-5, atol=1e-6)
    assert wrapped.generator(shape).output_shape == (None, *shape)


def test_conditional_networks_are_refused():
    with pytest.raises(ganlab.ConfigError, match=r"DCGAN is conditional, and a pack has no label"):
        packed("dcgan", labels="projection")


@pytest.mark.parametrize("name", ["gradient_normalization", "gran"])
def test_a_transform_by_slopes_is_refused_and_a_penalty_on_them_is_not(name):
    critic = packed("mlp", width=4)[1].critic((2,))
    made = [ganlab.component("constraints", each)() for each in ("gradient_penalty", name)]
    check_layers("critic", critic, (2,), constraints=made[:1], packing=3)
    check_layers("critic", critic, (2,), constraints=made)
    with pytest.raises(ganlab.IncompatibleError, match=rf"{name} changes each score .* packs of 3"):
        check_layers("critic", critic, (2,), constraints=made, packing=3)


def test_what_is_built_around_it_is_packed_too():
    _, wrapped = packed("mlp", width=8)
    assert [
        ganlab.component("architectures", name)(architecture=wrapped).packing for name in ("latents", "packed")
    ] == [3, 6]
