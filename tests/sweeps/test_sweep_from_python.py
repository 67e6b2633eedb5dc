"""`ganlab.sweep`, as a notebook calls it."""

import json

import pytest
from ganlab_sweep import Sweep
from ganlab_sweep.request import literal

import ganlab

SMALL = ["experiment.steps=2", "experiment.batch_size=8", "architectures.mlp.width=4", "experiment.evaluators=[]"]
SMALL += ["experiment.diagnostics=[]"]


@pytest.mark.slow
def test_sweep_trains_every_setting_and_seed(tmp_path):
    swept = ganlab.sweep(
        "quickstart",
        params=SMALL,
        grid={"constraints.gradient_penalty.weight": [0.5, 2]},
        seeds=range(2),
        jobs=2,
        runs=tmp_path,
        name="mine",
    )
    assert swept.path == tmp_path / "mine"
    assert {trial.name: trial.status for trial in swept.trials} == {
        f"gradient_penalty.weight={weight}/s{seed}": "completed" for weight in (0.5, 2) for seed in (0, 1)
    }
    weights = {ganlab.Run(t.run).info["settings"]["constraints.gradient_penalty.weight"] for t in swept.trials}
    assert weights == {0.5, 2.0}
    assert Sweep(swept.path).request.grid == ("constraints.gradient_penalty.weight=[0.5, 2]",)


def test_values_are_written_as_experiment_files_have_them():
    values = [1, 0.5, True, None, "own", "@constraints.r1()", ["@losses.hinge()", 2], "it's"]
    assert [literal(value) for value in values] == [
        *("1", "0.5", "True", "None", "'own'", "@constraints.r1()", "[@losses.hinge(), 2]", '"it\'s"')
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 0}, "jobs = 0 must be at least 1"),
        ({"search": "gird"}, "Did you mean 'searches.grid'"),
        ({"maximize": True}, "needs an objective"),
        ({"maximize": True, "objective": "critic/loss:min"}, "say the opposite. Set one, not both"),
        ({"objective": "class_frechet_distance/real_against_real"}, "unknown. Write --objective evaluation/c"),
        ({"seeds": [1, 1]}, "a seed appears twice"),
        ({"seeds": True}, r"seeds = True must be a whole number"),
        ({"seeds": 0.5}, r"seeds = 0\.5 must be a whole number, or a list of them"),
        ({"params": {"experiment.steps": 1}.items()}, "params = .* must be a text, or a list of texts"),
        ({"gin": "quickstar"}, "Did you mean 'quickstart'"),
    ],
)
def test_a_mistake_leaves_no_folder(tmp_path, arguments, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        ganlab.sweep(**{"gin": "quickstart", "runs": tmp_path / "runs", **arguments})
    assert not (tmp_path / "runs").exists()


def test_one_value_alone_is_a_list_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr("ganlab_sweep.sweeping.run_trials", lambda *_, **__: [])
    grid = {"constraints.gradient_penalty.weight": 1, "experiment.jit": "off"}
    swept = ganlab.sweep("quickstart", params="experiment.steps=20", grid=grid, seeds=3, runs=tmp_path)
    request = Sweep(swept.path).request
    assert (request.params, request.seeds) == (["experiment.steps=20"], [3])
    assert request.grid == ("constraints.gradient_penalty.weight=[1]", "experiment.jit=['off']")


@pytest.mark.parametrize(
    ("objective", "maximize"), [("modes", True), ("modes:min", False), ("reverse_kl", False), ("critic/loss", False)]
)
def test_figures_of_evaluators_have_their_better_direction(tmp_path, monkeypatch, objective, maximize):
    monkeypatch.setattr("ganlab_sweep.sweeping.run_trials", lambda *_, **__: [])
    swept = ganlab.sweep("eight_gaussians", objective=objective, runs=tmp_path)
    assert Sweep(swept.path).request.maximize is maximize


def test_command_line_and_python_store_the_same_request(tmp_path, monkeypatch):
    from click.testing import CliRunner
    from ganlab_sweep.command import sweep

    monkeypatch.setattr("ganlab_sweep.sweeping.run_trials", lambda *_, **__: [])
    monkeypatch.setattr("ganlab_sweep.command.run_trials", lambda *_, **__: [])
    settings = {"constraints.gradient_penalty.weight": [1, 10]}
    ganlab.sweep("quickstart", grid=settings, seeds=[0, 1], jobs=2, timeout=90, runs=tmp_path, name="python")
    words = ["--gin", "quickstart", "--grid", "constraints.gradient_penalty.weight=[1, 10]", "--seeds", "0..1"]
    words += ["--jobs", "2", "--timeout", "90s", "--runs", str(tmp_path), "--name", "terminal"]
    done = CliRunner().invoke(sweep, words)
    assert done.exit_code == 1, done.output  # no trial was made
    one, other = (json.loads((tmp_path / name / "sweep.json").read_text()) for name in ("python", "terminal"))
    assert {**one, "created": ""} == {**other, "created": ""}
