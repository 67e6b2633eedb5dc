"""`ganlab verify`'s check `replicas` of every installed constraint, on the toy networks."""

import pytest

import ganlab.plugins.manager
from ganlab.verification import Source
from ganlab.verification.replicas import check

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("cpus")]

# The settings that a constraint needs, and those for all: smooth units, because kinks magnify rounding.
NEEDS = {"consistency": ("architectures.mlp.dropout=0.1",)}
SMALL = (
    "architectures.mlp.width=16",
    "architectures.mlp.activation='tanh'",
    "experiment.batch_size=16",
    "experiment.critic_steps=1",
)

NAMES = sorted(name for kind, name in ganlab.plugins.manager.current().components if kind == "constraints")


def test_there_are_constraints():
    assert len(NAMES) > 20


@pytest.mark.parametrize("name", NAMES)
def test_it_trains_on_two_and_four_replicas_as_on_one_device(name):
    params = (f"experiment.constraints=[@constraints.{name}()]", *SMALL, *NEEDS.get(name, ()))
    row = check(Source(("eight_gaussians",), params), replicas=(2, 4), iterations=3, optimizers="sgd")
    assert row.status == "passed", row.detail
    assert row.figure is not None
    assert row.figure <= row.limit
