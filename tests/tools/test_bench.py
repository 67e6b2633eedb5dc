"""The arithmetic of tools/bench.py, worked out by hand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import pairs

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_the_median_is_of_ratios_and_not_a_ratio_of_medians():
    # A machine that slows down by 10 for two rounds: the medians alone would give 20 / 10 = 2.
    ratio = pairs.Ratio("a / b", [(1.0, 1.0), (3.0, 2.0), (20.0, 10.0), (40.0, 40.0), (50.0, 50.0)])
    assert ratio.ratios == [1.0, 1.5, 2.0, 1.0, 1.0]
    assert ratio.median == 1.0
    assert ratio.seconds == (20.0, 10.0)


def test_quartiles_lie_between_neighbours():
    # Sorted 1, 2, 3, 4: a quarter of the way along three gaps is 0.75, so 1.75 and 3.25.
    assert pairs.Ratio("", [(4.0, 1.0), (1.0, 1.0), (3.0, 1.0), (2.0, 1.0)]).quartiles == (1.75, 3.25)
    assert pairs.Ratio("", [(3.0, 2.0)]).quartiles == (1.5, 1.5)


def test_each_goes_first_in_every_other_round():
    calls = []
    given = pairs.alternate(lambda: calls.append("a"), lambda: calls.append("b"), 3)
    assert "".join(calls) == "abbaab"
    assert len(given) == 3
    assert all(a >= 0 and b >= 0 for a, b in given)


def test_pairs_keep_their_order_whichever_goes_first(monkeypatch):
    clock = iter([0.0, 1.0, 1.0, 3.0, 3.0, 5.0, 5.0, 6.0])  # a: 1 s, b: 2 s, b: 2 s, a: 1 s
    monkeypatch.setattr(pairs.time, "perf_counter", lambda: next(clock))
    assert pairs.alternate(lambda: None, lambda: None, 2) == [(1.0, 2.0), (1.0, 2.0)]


def test_seconds_are_of_one_iteration(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(pairs.time, "perf_counter", lambda: now[0])

    def taking(seconds):
        def train(count):
            now[0] += seconds * count

        return train

    ratio = pairs.compare("a / b", taking(0.5), taking(0.25), 3, seconds=2.0)
    assert ratio.pairs == [(0.5, 0.25)] * 3
    assert ratio.median == 2.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loop"], "no family 'loop' on a CPU; there are loops, precision"),
        (["--device", "gpu", "replicas"], "no family 'replicas' on a GPU; there are mlp, dcgan, sngan"),
        (["loops", "--jax", "no-such-python"], "--jax no-such-python: JAX cannot be imported there"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(arguments, message):
    command = [sys.executable, str(TOOLS / "bench.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.slow
def test_a_gpu_that_is_not_there_is_named():
    command = [sys.executable, str(TOOLS / "bench.py"), "--device", "gpu"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "sees no GPU. Install ganlab's extra [gpu] and NVIDIA's driver, or use --device cpu." in done.stderr
