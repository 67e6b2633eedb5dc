"""Mistakes that `ganlab verify` must find, injected into its processes: each is caught and named."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest
from ganlab_verify import Row, Source
from ganlab_verify.process import call

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent

PLUGIN = """
import sys

sys.path.insert(0, {here!r})
import mutants
from mutants import ganlab_architectures

{change}
"""

# Mistake: (experiment, cause, what departs or differs first, words of the explanation).
MUTANTS = {
    "mean_instead_of_sum": (
        "wgan_gp",
        "mean instead of sum",
        "critic/weights/",
        "applies others: half of each, a mean over replicas instead of the sum",
    ),
    "loss_over_the_local_batch": (
        "wgan_gp",
        "loss averaged over the replica",
        "critic/weights/",
        "2 times what it should be, the number of replicas: each averages the loss over its own examples",
    ),
    "double_all_reduce": (
        "wgan_gp",
        "reduced twice",
        "critic/weights/",
        "every replica hands over the same: gradients are reduced over replicas before the optimizer, which sums them",
    ),
    "penalty_averaged_per_replica": (
        "wgan_gp",
        "penalty scaled by replicas",
        "critic/weights/",
        "The penalty alone counts 2 times what it should, the rest is right",
    ),
    "penalty_of_a_statistic": (
        "wgan_gp",
        "gradient of the replica's own",
        "critic/weights/",
        "takes something from the replica's own part of the batch",
    ),
    "optimizer_outside_the_scope": (
        "wgan_gp",
        "optimizer outside the scope",
        "critic/optimizer/",
        "An optimizer outside the strategy's scope",
    ),
    "unsynchronized_batch_normalization": (
        "wgan",
        "unsynchronized statistics",
        "generator/buffers/batch_normalization/moving_mean",
        "Only moving statistics differ: an unsynchronized BatchNormalization",
    ),
    "noise_by_replica": (
        "wgan_gp",
        "noise by replica",
        "noise",
        "its seed contains the replica, but must contain the example number",
    ),
    "same_noise": ("wgan_gp", "identical noise", "noise", "on every replica: its seed lacks the example number"),
    "clipping_on_one_replica": (
        "wgan",
        "projection on some replicas",
        "critic/weights/",
        "the projection of weight_clipping acted on some replicas only",
    ),
    "power_iteration_on_one_replica": (
        "sngan",
        "state advanced apart",
        "constraints/spectral_norm/state/",
        "A state of constraint spectral_norm must be the same on every replica: its advance acted on some",
    ),
}
RIGHT = ("wgan", "sngan")


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def source(experiments, tmp_path_factory):
    """An experiment whose plugin file makes a mistake, or none: `source("wgan_gp", "same_noise")`."""
    folder = tmp_path_factory.mktemp("mutants")

    def source(base, *, architecture="mlp", change=""):
        gin, params = experiments(base, architecture=architecture)
        path = folder / f"mutant{len(list(folder.iterdir()))}.py"
        path.write_text(PLUGIN.format(here=str(HERE), change=change))
        # Weights on both sides of the limit: if nothing is clipped, there is nothing to find.
        clipping = ("constraints.weight_clipping.limit=0.1",) if base == "wgan" else ()
        return Source((gin,), params + clipping, plugin_file=str(path))

    return source


@pytest.fixture(scope="module")
def rows(source):
    """The check's rows for every mistake and for the experiments without one, from two processes."""
    every = {}
    for mutant, (base, *_) in MUTANTS.items():
        architecture = "unsynchronized" if mutant == "unsynchronized_batch_normalization" else "mlp"
        every[mutant] = (mutant, asdict(source(base, architecture=architecture)))
    every |= {base: (None, asdict(source(base))) for base in RIGHT}

    def half(names):
        options = {"sources": {name: every[name] for name in names}, "replicas": [2], "iterations": 2}
        return call("mutants:rows", Source(()), options, cpus=2)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]))
        halves = list(pool.map(half, (list(every)[::2], list(every)[1::2])))
    return {name: Row(**row) for found in halves for name, row in found.items()}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mistake_is_caught_and_explained(rows, mutant):
    _, cause, where, explanation = MUTANTS[mutant]
    row = rows[mutant]
    assert (row.check, row.status, row.data.get("cause")) == ("replicas", "failed", cause), row.detail
    assert row.data["where"].startswith(where)
    assert explanation in row.detail
    assert row.detail.startswith("By gradient descent on 2 replicas: ")
    assert row.data["iteration"] == 1
    assert row.figure > row.limit


def test_figures_show_the_factor_of_a_mistake(rows):
    # Twice the gradient is off by its own norm, half of it by half; the second update starts from other weights.
    assert rows["mean_instead_of_sum"].figure == pytest.approx(0.5, rel=1e-2)
    assert rows["loss_over_the_local_batch"].figure == pytest.approx(1.0, rel=1e-2)
    assert rows["double_all_reduce"].figure == pytest.approx(rows["loss_over_the_local_batch"].figure, rel=1e-5)


@pytest.mark.parametrize("base", RIGHT)
def test_without_a_mistake_the_same_experiment_passes(rows, base):
    assert rows[base].status == "passed", rows[base].detail
    assert rows[base].figure < rows[base].limit < 1e-2


def verify(source, *options):
    command = [sys.executable, "-m", "ganlab", "verify", "--gin", source.gin_files[0]]
    command += [argument for param in source.params for argument in ("--param", param)]
    command += ["--plugin-file", source.plugin_file] if source.plugin_file else []
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run([*command, *options], capture_output=True, text=True, env=environment)


def test_the_command_reports_a_mistake_and_exits_with_1(source):
    mistaken = source("wgan_gp", change="mutants.same_noise(setattr)")
    done = verify(mistaken, "--checks", "replicas", "--replicas", "2", "--iterations", "2")
    assert done.returncode == 1, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "replicas failed" in words(done.stdout)
    # The explanation has a column of its own, so its lines follow one another.
    column = done.stdout.splitlines()[0].index("limit") + len("limit")
    explanation = words(" ".join(line[column:].strip() for line in done.stdout.splitlines()[1:]))
    assert "The noise is identical on every replica: its seed lacks the example number" in explanation


def test_a_right_experiment_passes_the_checks_of_the_command(experiments):
    gin, params = experiments("wgan_gp")
    done = verify(
        Source((gin,), params), "--json", "--checks", "replicas,graph,resume", "--replicas", "2", "--iterations", "3"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["passed"] is True
    (experiment,) = answer["experiments"]
    rows = {row["check"]: row for row in experiment["rows"]}
    assert list(rows) == ["replicas", "graph", "resume"]
    assert {row["status"] for row in rows.values()} == {"passed"}
    compared = rows["replicas"]["data"]["worst"]
    assert set(compared) == {"by gradient descent on 2 replicas", "by its own optimizers on 2 replicas"}
    for kinds in compared.values():
        assert set(kinds) == {"variables", "metrics", "gradients", "gradients applied"}
        assert all(0 <= distance <= limit <= 0.1 for distance, limit in kinds.values())
        # Two replicas sum in a different order, so something differs: no run is compared with itself.
        assert max(distance for distance, _ in kinds.values()) > 0
    assert set(rows["graph"]["data"]["worst"]) == {"eagerly", "compiled by XLA"}
    assert rows["graph"]["data"]["worst"]["compiled by XLA"]["gradients"][0] > 0
    assert 1 <= rows["resume"]["data"]["interrupted_at"] <= 2
    assert rows["resume"]["data"]["different"] == []
