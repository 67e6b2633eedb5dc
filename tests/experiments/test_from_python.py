"""Experiments from Python: defaults, files by name, settings by keyword, and the run that comes back."""

import warnings

import numpy as np
import pytest
from small import sgd, strategy

import ganlab
from ganlab import config
from ganlab.architectures import MLP
from ganlab.constraints import WeightClipping
from ganlab.evaluators import FeatureLikelihood, SlicedWasserstein
from ganlab.losses import Sinkhorn
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe

DEFAULTS = """
import ganlab

@ganlab.hookimpl
def ganlab_defaults():
    return {"loss": "hinge"}
"""
RING = "experiment.dataset = @gaussian_ring()\nexperiment.architecture = @architectures.mlp()\n"
DEFAULTED = ("strategy", "loss", "generator_optimizer", "critic_optimizer")


@pytest.mark.parametrize("local", [False, True])
def test_parts_that_no_line_sets_have_defaults_of_plugins(tmp_path, monkeypatch, local):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ganlab_plugins.py").write_text(DEFAULTS)
    (tmp_path / "exp.gin").write_text(f"{RING}adam.beta_2 = 0.5\n")
    with plugins.using(plugins.discover(local=tmp_path / "ganlab_plugins.py" if local else None)):
        adam, parts = Recipe("optimizers", "adam", {"beta_2": 0.5}), config.load(["exp.gin"]).arguments
        loss = Recipe("losses", "hinge" if local else "wasserstein")
        assert [parts[name] for name in DEFAULTED] == [Recipe("strategies", "mirrored"), loss, adam, adam]
        without = config.load(["exp.gin"], ["experiment.loss=@losses.sinkhorn()"]).arguments
        assert without.keys() == parts.keys() - {"critic_optimizer"}
    with plugins.using(plugins.discover(deny=["ganlab_optimizers"])), pytest.raises(ganlab.ConfigError) as caught:
        config.load(["exp.gin"], ["adam.beta_2=0.5"])
    assert "Unknown component 'adam'" in str(caught.value)


def test_parts_that_python_leaves_out_have_the_same(cpus):
    parts = ganlab.experiment(dataset=np.zeros((4, 2)), architecture=MLP()).recipe.arguments
    assert [parts[name].selector for name in DEFAULTED] == [
        "strategies.mirrored",
        "losses.wasserstein",
        "optimizers.adam",
        "optimizers.adam",
    ]
    without = ganlab.experiment(dataset=np.zeros((4, 2)), architecture=MLP(), loss=Sinkhorn())
    assert without.critic_optimizer is None


def test_numbers_of_numpy_are_numbers(cpus):
    given = {"steps": np.arange(8)[7], "seed": np.int64(3), "ema_decay": np.float32(0.5), "batch_size": np.int32(2)}
    made = ganlab.experiment(dataset=np.zeros((4, 2)), architecture=MLP(width=np.int64(16)), **given)
    assert made.recipe.arguments["architecture"].arguments == {"width": 16}
    assert [type(getattr(made, name)) for name in given] == [int, int, float, int]
    assert made.replace(steps=np.int64(5)).steps == 5


def test_a_run_is_a_path_and_its_evaluation_on_other_data_is_noticed(tmp_path, cpus):
    np.save(tmp_path / "a.npy", np.eye(4, dtype=np.float32))
    data = ganlab.component("datasets", "arrays")(path=str(tmp_path / "a.npy"))
    given = {"steps": 1, "batch_size": 2, "critic_steps": 1, "evaluators": []}
    run = ganlab.train(ganlab.experiment(dataset=data, architecture=MLP(width=8), **given), tmp_path / "run")
    assert len(ganlab.compare([run]).configurations) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.evaluate(distance := SlicedWasserstein(samples=4))
    np.save(tmp_path / "a.npy", 2 * np.eye(4, dtype=np.float32))
    with pytest.warns(UserWarning, match="is evaluated on other data than it was trained on: data of datasets.arrays"):
        run.evaluate(distance)


def test_an_array_for_a_parameter_that_takes_a_dataset_is_refused_with_a_way_to_give_it(cpus):
    with pytest.raises(
        ganlab.ConfigError, match=r"fld\.held_out is an array of shape \(4, 2\).*datasets\.Arrays\(path"
    ):
        FeatureLikelihood(held_out=np.zeros((4, 2)))


def test_a_file_becomes_an_experiment_that_can_be_changed(tmp_path, cpus):
    experiment = ganlab.load("eight_gaussians", params=["strategies.mirrored.virtual_replicas=2"], steps=7)
    assert (experiment.steps, experiment.replicas) == (7, 2)
    changed = experiment.replace(constraints=[WeightClipping()], batch_size=8)
    assert changed.recipe.arguments["constraints"] == [Recipe("constraints", "weight_clipping")]
    assert (changed.steps, changed.batch_size, experiment.batch_size != 8) == (7, 8, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda known: ganlab.load("eight_gaussians", stepz=3), r"no parameter 'stepz'\. Did you mean 'steps'"),
        (lambda known: known.replace(stepz=3), r"no parameter 'stepz'\. Did you mean 'steps'"),
        (lambda known: ganlab.experiment(stepz=3), r"no parameter 'stepz'\. Did you mean 'steps'"),
        (lambda known: ganlab.train(known, "runs/one", steps=0), r"steps = 0 must be a whole number of at least 1"),
        (lambda known: ganlab.train(known, resume=True), r"resume and resume_or_start need run_dir"),
        (lambda known: known.replace(architecture=MLP), r"must be a ganlab\.Architecture: call it"),
        (lambda known: known.replace(batch_size=3), r"does not divide over 2 replicas"),
    ],
)
def test_wrong_settings_are_refused(cpus, call, message):
    known = ganlab.experiment(dataset=np.zeros((4, 2)), architecture=MLP(), strategy=strategy(2))
    with pytest.raises(ganlab.GanlabError, match=message):
        call(known)


@pytest.mark.slow
def test_a_run_of_arrays_samples_exports_and_shows_itself(tmp_path, monkeypatch, cpus):
    monkeypatch.chdir(tmp_path)
    points = np.random.default_rng(0).normal(size=(64, 2))
    experiment = ganlab.experiment(
        dataset=points, architecture=MLP(width=8), critic_optimizer=sgd(), generator_optimizer=sgd(), batch_size=8
    )
    run = ganlab.train(experiment, steps=2, critic_steps=1)
    assert run.path.parent.as_posix() == "runs/python"
    assert run.experiment.steps == run.info["step"] == 2
    np.testing.assert_array_equal(run.sample(3), ganlab.exporting.draw(run, 3).samples)
    latents = ganlab.exporting.draw(run, 3).latents
    np.testing.assert_allclose(run.sample(3), np.asarray(run.generator()(latents)), rtol=1e-5, atol=1e-6)
    assert run.export("exported")["step"] == 2
    shown = run._repr_html_()
    assert "completed, step 2 of 2" in shown
    assert "critic/wasserstein" in shown
    assert '<img src="data:image/' in shown
    # Other data are another experiment, whoever asks.
    moved = run.experiment.replace(dataset=points + 1)
    for other in (
        lambda: ganlab.train(moved, run.path, resume=True, steps=3),
        lambda: ganlab.Run(run.path).evaluate("sliced_wasserstein", experiment=moved),
    ):
        with pytest.raises(ganlab.GanlabError, match=r"dataset: .*float64 64x2"):
            other()
    ganlab.train(moved, "runs/python/moved")
    assert len(ganlab.compare("runs/python").configurations) == 2


@pytest.mark.parametrize("named", ["", "experiment.critic_optimizer = @optimizers.adam()\n", "both"])
def test_an_override_in_short_sets_one_of_two_default_optimizers(named, tmp_path):
    both = "".join(f"experiment.{side}_optimizer = @optimizers.adam()\n" for side in ("critic", "generator"))
    lines = "experiment.dataset = @datasets.gaussian_ring()\nexperiment.architecture = @architectures.mlp()\n"
    (tmp_path / "ring.gin").write_text(lines + (both if named == "both" else named))
    settings = config.flatten(config.load([tmp_path / "ring.gin"], ["critic.adam.beta_1=0.25"]))
    found = [settings[f"{side}_optimizer/optimizers.adam.beta_1"] for side in ("critic", "generator")]
    assert found == [0.25, 0.5]
