"""`ganlab verify`'s check `replicas` of a constraint of every mechanism, on the toy networks."""

import pytest
from ganlab_verify import Source
from ganlab_verify.replicas import check

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("cpus")]

# Smooth units, because kinks magnify rounding.
SMALL = (
    "architectures.mlp.width=16",
    "architectures.mlp.activation='tanh'",
    "experiment.batch_size=16",
    "experiment.critic_steps=1",
)


# The kit trains every constraint on two and four replicas by the same gradient descent (test_first_party.py). What this
# adds is that the command's own recording and limits suit every way in which a constraint takes part in an update.
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("banach_penalty", ()),  # advance, penalty
        ("bidirectional_spectral_norm", ()),  # advance, reparameterize
        ("bound_penalty", ()),  # advance, weight_penalty
        ("consistency", ("architectures.mlp.dropout=0.1",)),  # penalty, with noise
        ("gradient_normalization", ()),  # transform
        ("latent_consistency", ()),  # penalty, generator_penalty
        ("parseval", ()),  # advance, project, reparameterize
        ("weight_normalization", ()),  # parameters, reparameterize
        ("latent_step", ()),  # transform of the generator
        ("path_length", ()),  # advance, generator_penalty
    ],
)
def test_it_trains_on_two_replicas_as_on_one_device(name, settings):
    part = "generator_constraints" if name in ("latent_step", "path_length") else "constraints"
    params = (f"experiment.{part}=[@constraints.{name}()]", *SMALL, *settings)
    row = check(Source(("eight_gaussians",), params), replicas=(2,), iterations=2, optimizers="sgd")
    assert row.status == "passed", row.detail
    assert row.figure is not None
    assert row.figure <= row.limit
