"""`ganlab best` names the winner of a sweep, what may be concluded, and a command that trains it again."""

import json
import math
import shlex
import shutil

import pytest
from click.testing import CliRunner
from ganlab_sweep import Sweep
from ganlab_sweep.configurations import Configuration
from synthetic import SETTINGS, write_run

from ganlab.cli import cli
from ganlab.config import load, render
from ganlab.runs import RunDirectory

WEIGHT = "constraints.gradient_penalty.weight"
MODES = "evaluation/mode_coverage/modes"


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """Makes a sweep over weights, of runs with these last values of a metric, one a seed; None has not completed."""
    monkeypatch.chdir(tmp_path)

    def swept(values, metric=MODES, **asked):
        seeds = list(range(max(map(len, values.values()))))
        texts = {weight: render(load(["eight_gaussians"], [f"{WEIGHT}={weight}"])) for weight in values}
        made = [Configuration(f"weight={weight}", {WEIGHT: weight}, texts[weight]) for weight in values]
        info = {"asked": {"seeds": seeds, **asked}, "proposals": [], "trials": {}, "folder": ".", "threads": 1}
        Sweep.create(tmp_path / "s", info, made)
        for weight, figures in values.items():
            for seed, figure in enumerate(figures):
                settings = {**SETTINGS, WEIGHT: float(weight)}
                logged = {"evaluation": {metric.removeprefix("evaluation/"): [figure or 0.0]}}
                kind = logged if metric == MODES else {"metrics": {metric: [figure or 0.0]}}
                status = "failed" if figure is None else "completed"
                place = tmp_path / "s" / f"weight={weight}" / f"s{seed}"
                write_run(place, seed=seed, settings=settings, status=status, **kind)
        return texts

    return swept


def invoke(*words):
    done = CliRunner().invoke(cli, ["best", *words])
    return done.exit_code, done.output


def test_a_winner_beyond_chance_comes_with_its_command_and_its_file(swept):
    texts = swept({"1": (8.0, 7.0, 8.0, 7.5), "10": (1.0, 2.0, 0.0, 3.0)})
    status, said = invoke("s", "--metric", "modes", "-o", "best.gin")
    assert status == 0
    assert said.startswith(f"Best {MODES} (max): 7.625 [")
    assert "the mean over 4 seeds, with weight=1.\n" in said
    # Four against four, completely apart: 2 / C(8, 4) = 0.029.
    assert "\nThe other configuration is worse, beyond chance.\n" in said
    assert "Train it again, on other seeds: ganlab sweep --gin best.gin --seeds 4..7\n" in said
    with open("best.gin") as file:
        assert load(["best.gin"]) == load(["eight_gaussians"], [f"{WEIGHT}=1"])
        assert file.read() == texts["1"]


def test_a_winner_of_two_seeds_may_be_chance_and_its_command_is_quoted(swept, tmp_path):
    swept({"1": (8.0, 7.0), "10": (1.0, 2.0)}, no_plugin=["one's"])
    (tmp_path / "s").rename(tmp_path / "my sweep")
    found = json.loads(invoke("my sweep", "--json")[1])
    assert (found["configuration"], found["settings"], found["mean"]) == ("weight=1", {WEIGHT: "1"}, 7.5)
    # Two against two, completely apart: 2 / C(4, 2) = 0.33; of four against four it is 0.029.
    verdict = "Its lead over the other one may be chance. At least 4 seeds of each would settle it."
    assert (found["concluded"], found["tied"], found["unhealthy"]) == ([verdict], True, 0)
    *words, option, plugin = shlex.split(found["command"])
    assert (option, plugin) == ("--no-plugin", "one's")
    assert words[2:] == ["--gin", "my sweep/trials/weight=1.gin", "--seeds", "2..3"]


def test_rows_without_the_metric_are_no_ties(swept, tmp_path):
    swept({"1": (8.0, 7.0, 8.0, 7.0, 8.0), "2": (0.0,) * 5, "3": (0.0,) * 5})
    for seed in range(5):
        shutil.rmtree(path := tmp_path / "s" / "weight=3" / f"s{seed}")
        write_run(path, seed=seed, settings={**SETTINGS, WEIGHT: 3.0}, metrics={"critic/loss": [1.0]})
    found = json.loads(invoke("s", "--metric", "modes", "--json")[1])
    assert found["concluded"][0] == (
        "1 of 2 others is worse, beyond chance. Nothing can be concluded about 1 of 2 others: too few values."
    )
    assert not found["tied"]


def test_the_first_line_marks_a_winner_that_is_tied_or_unhealthy(swept, tmp_path):
    swept({"1": (8.0, 7.0, 8.0, 7.0), "2": (8.0, 6.0, 7.0, 7.0), "3": (0.0, 1.0, 0.0, 1.0)})
    RunDirectory(tmp_path / "s" / "weight=1" / "s0").update(health=["r1: It is too weak."])
    first, second, *_ = invoke("s")[1].splitlines()
    assert first == f"Best {MODES} (max), tied, unhealthy: 7.5 [6.581, 8.419], the mean over 4 seeds, with weight=1."
    # Noether, of the 11 of 16 pairs that weight=2 loses: (2.394 + 0.842)^2 / (6 (11/16 - 1/2)^2) = 49.6.
    assert second == "Its lead over 2 of 2 others may be chance. At least 50 seeds of each would settle it."


@pytest.mark.parametrize(
    ("values", "first", "second"),
    [
        # A mean of the seeds that have a figure is not one of all seeds.
        ({"1": (9.0, 9.0, 9.0, math.nan), "2": (7.0, 7.0, 8.0, 8.0)}, "7.5 [6.581, 8.419]", "The difference from the"),
        ({"1": (100.0, *(1.0,) * 7), "2": (7.0,) * 8}, ", tied: 13.38", "In pairs of runs the other one is better, "),
        ({"1": (8.0, 8.0), "2": (8.0, 8.0)}, ", tied: 8 range [8, 8]", "No difference from the other one is seen."),
        ({"1": (8.0,), "2": (8.0,)}, ", tied: 8, with weight=1.", "Nothing can be concluded"),
    ],
)
def test_seeds_without_a_figure_and_equal_ones_are_said(swept, values, first, second):
    swept(values)
    lines = invoke("s")[1].splitlines()
    assert first in lines[0]
    assert lines[1].startswith(second)


@pytest.mark.parametrize(("maximize", "winner", "mean"), [(False, "weight=2", 3.5), (True, "weight=1", 4.0)])
def test_the_objective_decides_among_the_completed(swept, maximize, winner, mean):
    values = {"1": (3.0, 5.0), "2": (1.0, 6.0), "3": (-9.0, None), "4": (99.0, None)}
    swept(values, "critic/loss", objective="critic/loss", maximize=maximize)
    found = json.loads(invoke("s", "--json")[1])
    assert (found["configuration"], found["mean"]) == (winner, mean)
    assert found["concluded"][-1] == "2 configurations not completed, left out."


@pytest.mark.parametrize(
    ("values", "words", "message"),
    [
        ({"1": (1.0,)}, ["--metric", "loss"], "The runs have no metric 'loss'."),
        ({"1": (None,)}, [], "has completed all its seeds. Resume the sweep with --retry-failed."),
    ],
)
def test_what_cannot_be_decided_is_one_sentence(swept, values, words, message):
    swept(values)
    assert message in invoke("s", *words)[1]


def test_a_loss_has_no_better_direction_unless_it_is_given(swept):
    swept({"1": (1.0,), "10": (2.0,)}, "critic/loss")
    assert "Write --metric critic/loss:min, or :max." in invoke("s", "--metric", "loss")[1]
    status, said = invoke("s", "--metric", "loss:min")
    assert (status, said.splitlines()[0]) == (0, "Best critic/loss (min): 1, with weight=1.")
    assert said.splitlines()[-1].endswith("--seeds 1")
