"""XLA changes nothing but the speed."""

import numpy as np
import pytest
from small import Layers, assert_same, constraint, dropping_critic, normalized_critic, normalized_generator, trained

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.mark.parametrize("replicas", [0, 2])
def test_compiled_training_equals_uncompiled(replicas):
    parts = {
        "architecture": Layers(critic=dropping_critic),
        "constraints": [constraint("spectral_norm"), constraint("gradient_penalty")],
    }
    off, on = (trained(replicas, count=10, jit=jit, **parts) for jit in ("off", "on"))

    assert on.trainer.compiled
    assert not off.trainer.compiled
    assert_same(off, on)


@pytest.mark.parametrize(
    "networks",
    [{"critic": normalized_critic}, {"generator": normalized_generator}],
    ids=["critic", "generator"],
)
def test_what_talks_to_other_replicas_stays_uncompiled(networks):
    parts = {"architecture": Layers(**networks), "constraints": [constraint("weight_clipping", limit=0.5)]}
    assert_same(trained(0, count=3, **parts), trained(2, count=3, jit="on", **parts))


def test_a_stack_that_reduces_in_advance_compiles():
    from contract_plugin import Dragan

    off, on = (trained(2, count=3, jit=jit, constraints=[Dragan()]) for jit in ("off", "on"))
    assert_same(off, on)
    assert np.isfinite(on.rows).all()
