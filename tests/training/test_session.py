"""The files of a run, however it ends."""

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from ganlab_compare.loaded_runs import read_run
from small import Layers, sgd, small, trained
from whole_runs import everything, lines

import ganlab
from ganlab import config
from ganlab.cli import cli
from ganlab.composition import compose
from ganlab.run import train
from ganlab.training import session
from ganlab.training.checkpoints import Checkpoints, restore
from ganlab.training.graph import sampling
from ganlab.training.graph.noise import LATENT, whole
from ganlab.training.graph.sampling import Sampler
from ganlab.training.graph.state import TrainingState

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.fixture(scope="module")
def raw(cpus):
    """The same training without a run: every metric of every iteration and replica."""
    experiment = everything()
    parts = {name: getattr(experiment, name) for name in ("constraints", "critic_optimizer", "generator_optimizer")}
    return trained(2, count=10, ema_decay=0.5, steps=10, **parts)


BOUND = "constraints/spectral_norm/lipschitz_bound"  # comes with an evaluation, though a constraint gives it


def rows(run):
    """The rows, with only the figures of training."""
    found = [line for line in lines(run) if "critic/loss" in line["metrics"]]
    for row in found:
        metrics = row["metrics"].items()
        row["metrics"] = {tag: e for tag, e in metrics if not tag.startswith("evaluation/") and tag != BOUND}
    return found


def test_rows_are_means_over_iterations_and_replicas(completed, raw):
    assert [row["step"] for row in rows(completed)] == [3, 6, 9, 10]
    for row, (begin, end) in zip(rows(completed), [(0, 3), (3, 6), (6, 9), (9, 10)], strict=True):
        assert row["metrics"].keys() == {metric.tag for metric in raw.trainer.metrics}
        for tag, entry in row["metrics"].items():
            seen = raw.metric(tag)[begin:end].astype(np.float64)
            replicas = seen.mean(axis=0)
            np.testing.assert_allclose(entry["replicas"], replicas, rtol=1e-6)
            np.testing.assert_allclose(entry["reduced"], replicas.mean(), rtol=1e-6)
            assert entry["replicas"][0] != entry["replicas"][1]


def test_the_evaluation_is_in_the_rows_and_in_run_json(completed):
    evaluated = [line for line in lines(completed) if "evaluation/mode_coverage/modes" in line["metrics"]]
    assert [line["step"] for line in evaluated] == [5, 10]
    prefix = "evaluation/"
    figures = {t.removeprefix(prefix): e for t, e in evaluated[-1]["metrics"].items() if t.startswith(prefix)}
    assert completed.info["evaluation"] == {name: entry["reduced"] for name, entry in figures.items()}
    assert all(entry["replicas"] == [] for entry in figures.values())
    # One line per step: if training is logged at that step too, it is the same line.
    assert [line["step"] for line in lines(completed)] == [3, 5, 6, 9, 10]
    assert figures.keys() == {f"mode_coverage/{figure}" for figure in ("modes", "high_quality", "reverse_kl")}


def test_run_json_describes_the_run(completed):
    info = completed.info
    wanted = {"status": "completed", "step": 10, "steps": 10, "seed": 0, "replicas": 2, "strategy": "MirroredStrategy"}
    assert info.items() >= wanted.items()
    assert info["metrics"] == {tag: entry["reduced"] for tag, entry in rows(completed)[-1]["metrics"].items()}
    assert info["wall_seconds"] > 0
    assert info["provenance"].keys() >= {"git", "packages", "plugins", "devices", "argv"}
    assert info["provenance"]["packages"]["tensorflow"] == tf.__version__


def test_config_gin_is_the_experiment(completed):
    again = compose(completed.recipe())
    assert again.recipe == everything().recipe
    assert config.load([completed.path / "operative.gin"]).arguments["batch_size"] == 12


def test_tensorboard_reads_the_run(completed, raw):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(completed.path), size_guidance={"images": 0, "scalars": 0, "tensors": 0}).Reload()
    tags = {metric.tag for metric in raw.trainer.metrics}
    assert tags >= {"critic/loss", "critic/wasserstein", "critic/penalty", "generator/loss"}
    assert "constraints/gradient_penalty/slope" in tags
    figures = {f"evaluation/{name}" for name in completed.info["evaluation"]}
    scalars = set(events.Tags()["scalars"])
    assert scalars == tags | figures | {BOUND} | {f"replica/{i}/{tag}" for tag in tags for i in (0, 1)}
    for row in rows(completed):
        for tag, entry in row["metrics"].items():
            for name, value in (
                (tag, entry["reduced"]),
                *((f"replica/{i}/{tag}", v) for i, v in enumerate(entry["replicas"])),
            ):
                (found,) = [event.value for event in events.Scalars(name) if event.step == row["step"]]
                assert found == pytest.approx(value, rel=1e-6)

    assert [image.step for image in events.Images("samples")] == [5, 10]
    assert "custom_scalars__config__" in events.Tags()["tensors"]
    assert "_hparams_/session_start_info" in events.Tags()["tensors"]


def test_the_generator_of_a_run_is_its_average(completed):
    state = TrainingState(everything())
    restore(Checkpoints(completed.path / "checkpoints").latest(), state.variables())
    averaged = Sampler(state.generator.network, state.generator.average.weights, Layers())(50, seed=3)
    trained_last = Sampler(state.generator.network, state.generator.weights, Layers())(50, seed=3)

    model = ganlab.Run(completed.path).generator()

    latent = whole("normal", (50, 3), seed=3, stream=LATENT)
    np.testing.assert_allclose(model(latent, training=False), averaged, rtol=1e-6, atol=1e-6)
    assert np.abs(averaged - trained_last).max() > 1e-4


def test_large_samples_are_drawn_a_few_at_a_time(monkeypatch):
    generator = TrainingState(everything()).generator
    expected = Sampler(generator.network, generator.weights, Layers())(50, seed=3)
    monkeypatch.setattr(sampling, "_AT_ONCE", 7 * Layers().latent_dim)
    few = Sampler(generator.network, generator.weights, Layers())
    np.testing.assert_allclose(few(50, seed=3), expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ganlab.ContractError, match=r"268435456 latent vectors of 3 numbers are more than .* at once"):
        few.latents(2**28, seed=3)


def test_the_generator_of_a_run_needs_no_data(completed, monkeypatch):
    def absent(self):
        raise OSError("the data is elsewhere")

    latent = whole("normal", (5, 3), seed=3, stream=LATENT)
    expected = ganlab.Run(completed.path).generator()(latent, training=False)
    monkeypatch.setattr("ganlab_builtin.datasets.mixtures.GaussianRing.__init__", absent)
    np.testing.assert_array_equal(ganlab.Run(completed.path).generator()(latent, training=False), expected)
    assert completed.info["sample_shape"] == [2]


@pytest.mark.slow
def test_run_json_lists_the_compiled_parts(tmp_path):
    assert train(small(0, steps=1, jit="on"), tmp_path / "run").info["compiled"] == ["critic", "generator"]


class Spy:
    def __init__(self, *, fails=False):
        self.calls, self.fails = [], fails

    def _record(self, *what):
        self.calls.append(what)
        if self.fails:
            raise RuntimeError("tracker down")

    @ganlab.hookimpl
    def ganlab_run_start(self, run):
        self._record("start", run.info["status"], run.path)

    @ganlab.hookimpl
    def ganlab_metrics(self, run, records):
        self._record("metrics", records[0].step, {record.tag: record for record in records})

    @ganlab.hookimpl
    def ganlab_run_end(self, run, status):
        self.error = run.info.get("error")
        self._record("end", status, run.info["status"])


def test_hooks_are_called_and_a_failing_one_stops_nothing(tmp_path, plugged, capsys):
    failing, spy = Spy(fails=True), Spy()
    plugged(failing=failing, spy=spy)

    try:
        raise ganlab.ConfigError("handled")
    except ganlab.ConfigError:  # is no error of a run that is trained meanwhile
        run = train(small(2, steps=4, log_every=2), tmp_path / "run")

    assert (run.info["status"], run.info.get("error")) == ("completed", None)
    assert spy.calls[0] == ("start", "running", tmp_path / "run")
    assert spy.calls[-1] == ("end", "completed", "completed")
    assert [what[1] for what in spy.calls[1:-1]] == [2, 4]
    record = spy.calls[1][2]["critic/loss"]
    assert len(record.replicas) == 2
    assert record.reduced == rows(run)[0]["metrics"]["critic/loss"]["reduced"]
    assert len(failing.calls) == len(spy.calls)
    assert "'failing' failed in ganlab_run_start: RuntimeError('tracker down')" in capsys.readouterr().err


def diverged(folder, **parts):
    """A run of rectifiers under a learning rate that is much too high, and its error."""
    rectifiers = ganlab.component("architectures", "mlp")(width=8, depth=2, latent_dim=3)
    with pytest.raises(ganlab.TrainingFailedError) as caught:
        train(small(0, architecture=rectifiers, critic_optimizer=sgd(1e3), **parts), folder)
    return ganlab.Run(folder), str(caught.value)


def test_diverged_run_names_the_step_and_the_metric(tmp_path, plugged):
    spy = Spy()
    plugged(spy=spy)
    run, error = diverged(tmp_path / "run", log_every=1)
    tag, _, step = error.partition(" is not finite from step ")
    step = int(step.split(" ")[0])
    assert run.info["status"] == "diverged"
    assert spy.calls[-1] == ("end", "diverged", "diverged")
    assert run.info["error"] == spy.error == error
    assert run.info["health"][0] == f"training: {error}"
    # There are rows up to that step, and the metric is finite before it.
    assert [row["step"] for row in rows(run)] == list(range(1, step + 1))
    assert step > 1
    values = [float(row["metrics"][tag]["reduced"]) for row in rows(run)]
    assert np.isfinite(values[:-1]).all()
    assert not np.isfinite(values[-1])


def test_run_diverging_between_rows_records_the_growing_metrics(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "_CHUNK_SECONDS", 1e9)  # chunks of 1, 2, 4, ... steps, however busy the machine is
    run, error = diverged(tmp_path / "run", log_every=1000, steps=1000)
    step, info = int(error.partition(" from step ")[2].split(" ")[0]), run.info
    # The message and run.json say of both numbers what they are.
    assert info["step"] > info["diverged_at"] == step
    assert f"By the time that was seen, step {info['step']} was done, which is the step in run.json." in info["error"]
    shown = CliRunner().invoke(cli, ["runs", "show", str(tmp_path / "run")]).output
    assert f"diverged from step {step} on, seen after step {info['step']} of 1000" in shown
    assert read_run(tmp_path / "run").step == step
    before, at = rows(run)
    assert (before["step"], at["step"]) == (step - 1, step)
    tag = error.partition(" is not finite")[0]
    assert not np.isfinite(float(at["metrics"][tag]["reduced"]))
    assert all(np.isfinite(float(value["reduced"])) for value in before["metrics"].values())


class Removing(ganlab.Evaluator):
    """Removes a file of the run, as somebody else may."""

    def evaluate(self, sample, dataset, run):
        if run is not None:
            (run.path / "run.json").unlink()
        return {"figure": 1.0}


def test_a_file_that_is_removed_during_training_fails_the_run(tmp_path):
    parts = {"steps": 4, "evaluate_every": 2, "log_every": 1, "evaluators": [Removing()]}
    message = r"run\.json cannot be read: No such file .* while it trained\. Put them back and resume"
    with pytest.raises(ganlab.TrainingFailedError, match=message):
        train(small(0, **parts), tmp_path / "run")
