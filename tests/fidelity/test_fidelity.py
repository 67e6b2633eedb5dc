"""Published experiments are the programs that they name, held against numbers that those programs gave."""

import pytest
from fidelities import comparing, ours, recipe

pytestmark = pytest.mark.usefixtures("cpus")

NAMES = [f"mimicry_{kind}_{side}" for kind in ("sngan", "wgan_gp") for side in (32, 48, 64, 128)]
NAMES += ["biggan_imagenet128_256x8", "biggan_deep_imagenet128", "r3gan_cifar10"]
QUICK = {"mimicry_sngan_32"}


def apart(name, **changes):
    """The largest difference of a case with other settings, and where it is."""
    case = recipe.CASES[name]
    found = comparing.differences(ours.numbers(case, **changes), comparing.recorded(case)["numbers"])
    worst = max(found, key=found.get)
    return found[worst], worst


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_outputs_losses_gradients_and_updates_are_the_programs(name):
    case = recipe.CASES[name]
    numbers = comparing.recorded(case)["numbers"]
    assert {"samples", "generator_loss", "real_scores", "fake_scores", "critic_loss"} <= numbers.keys()
    assert len(numbers) > 100
    assert apart(name)[0] < comparing.LIMIT
    assert ours.parameters(case) == comparing.recorded(case)["parameters"]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("mimicry_sngan_32", {"pooling": "mean"}),
        pytest.param("mimicry_sngan_32", {"upsampling": "nearest"}, marks=pytest.mark.slow),
        pytest.param("mimicry_sngan_32", {"epsilon": 1e-3}, marks=pytest.mark.slow),
        pytest.param("mimicry_sngan_32", {"rectified_shortcuts": False}, marks=pytest.mark.slow),
        pytest.param("mimicry_wgan_gp_64", {"critic_hidden": "output"}, marks=pytest.mark.slow),
        pytest.param("biggan_imagenet128_256x8", {"epsilon": 1e-4}, marks=pytest.mark.slow),
        pytest.param("r3gan_cifar10", {"group": 32}, marks=pytest.mark.slow),
    ],
)
def test_a_planted_deviation_is_caught(name, changes):
    assert apart(name, **changes)[0] > 100 * comparing.LIMIT
