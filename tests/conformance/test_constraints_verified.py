"""`ganlab verify`'s check `replicas` of a constraint of every mechanism, on the toy networks."""

import inspect

import pytest
from ganlab_verify import Source
from ganlab_verify.replicas import check

import ganlab.plugins.manager
from ganlab.interfaces import Constraint

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("cpus")]

# The settings that a constraint needs, and those for all: smooth units, because kinks magnify rounding.
NEEDS = {
    "consistency": ("architectures.mlp.dropout=0.1",),
    "transport_cost": ("architectures.mlp.latent_dim=2",),
    # The iterations are unrolled: each makes the graphs larger, not other.
    "bjorck": ("constraints.bjorck.iterations=4",),
}
SMALL = (
    "architectures.mlp.width=16",
    "architectures.mlp.activation='tanh'",
    "experiment.batch_size=16",
    "experiment.critic_steps=1",
)
# They take no part in an update, or only look.
PASSIVE = {"prepare", "diagnose", "lipschitz_bound"}

# Needs images, where these networks make points; its mechanism is that of many others.
IMAGES = {"augmentation_consistency"}
# They act on the generator alone.
OF_GENERATOR = {"latent_step", "mode_seeking", "path_length", "transport_cost"}

NAMES = sorted(
    name for kind, name in ganlab.plugins.manager.current().components if kind == "constraints" and name not in IMAGES
)


def mechanism(name):
    """The methods by which a constraint changes training, whether it needs noise, and whether on the generator."""
    kind = ganlab.plugins.manager.current().component("constraints", name).factory.make
    methods = {method for method, _ in inspect.getmembers(Constraint, inspect.isfunction)} - PASSIVE
    own = frozenset(method for method in methods if getattr(kind, method) is not getattr(Constraint, method))
    return own, name == "consistency", name in OF_GENERATOR


# The kit trains every constraint on two and four replicas by the same gradient descent (test_first_party.py). What this
# adds is that the command's own recording and limits suit every way in which a constraint takes part in an update.
ONE_OF_EACH = list({mechanism(name): name for name in reversed(NAMES)}.values())


def test_there_are_constraints_of_many_mechanisms():
    assert len(NAMES) > 20
    assert len(ONE_OF_EACH) > 9
    assert frozenset.union(*(own for own, *_ in map(mechanism, ONE_OF_EACH))) >= {
        "parameters",
        "initial_state",
        "advance",
        "reparameterize",
        "transform",
        "penalty",
        "generator_penalty",
        "weight_penalty",
        "project",
    }


@pytest.mark.parametrize("name", sorted(ONE_OF_EACH))
def test_it_trains_on_two_replicas_as_on_one_device(name):
    part = "generator_constraints" if name in OF_GENERATOR else "constraints"
    params = (f"experiment.{part}=[@constraints.{name}()]", *SMALL, *NEEDS.get(name, ()))
    row = check(Source(("eight_gaussians",), params), replicas=(2,), iterations=2, optimizers="sgd")
    assert row.status == "passed", row.detail
    assert row.figure is not None
    assert row.figure <= row.limit
