"""Files of gin/methods that train a toy to a figure: every mode of the ring, and samples spread over them."""

import math

import pytest

import ganlab
from ganlab import config
from ganlab.composition import compose

pytestmark = [pytest.mark.usefixtures("cpus"), pytest.mark.slow]


def evaluated(name, folder, *params):
    given = ["strategies.mirrored.virtual_replicas=1", "experiment.evaluate_every=0", *params]
    run = ganlab.train(compose(config.load([f"methods/{name}"], given)), folder / "run")
    assert run.info["status"] == "completed"
    return {name.removeprefix("mode_coverage/"): value for name, value in run.info["evaluation"].items()}


# The Kullback-Leibler divergence from even modes is log 8 = 2.08 for one mode, and log 2 = 0.69 for half of them.
@pytest.mark.parametrize(
    ("name", "steps", "reverse_kl"),
    [
        ("sinkhorn", 1500, 0.3),
        ("sliced", 1500, 0.3),
        ("max_sliced", 3000, math.log(2)),
        ("consensus", 3000, math.log(2)),
        ("unrolled", 1500, math.log(2)),
        ("extragradient", 6000, 0.3),
        ("first_wgan", 3000, math.log(2)),
        ("stopping_rule", 15000, 0.3),
    ],
)
def test_all_modes_are_found_and_samples_are_spread_over_them(name, steps, reverse_kl, tmp_path):
    found = evaluated(name, tmp_path, f"experiment.steps={steps}")
    assert found["modes"] == 8
    assert found["reverse_kl"] < reverse_kl


def test_series_are_at_most_twice_as_far_from_real_ones_as_these_from_each_other(tmp_path):
    found = evaluated("sines", tmp_path)
    assert found["sliced_wasserstein/distance"] < 2 * found["sliced_wasserstein/real_against_real"]
