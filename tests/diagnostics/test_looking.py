"""Diagnostics within a run: when they look, what they write, and what they report of a failing critic."""

import functools
import io

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from views import component, experiment
from whole_runs import texts

import ganlab
from ganlab.run import train
from ganlab.training import start

pytestmark = pytest.mark.usefixtures("cpus")

ALL = ("gradient_norms", "weights", "singular_values", "slopes", "lipschitz_interval", "surface", "units")


def diagnostics(**every):
    return [component("diagnostics", name, every=every.get(name, 0)) for name in ALL]


def with_all(replicas, **parts):
    given = {
        "constraints": [component("constraints", "gradient_penalty", weight=1.0)],
        "diagnostics": diagnostics(slopes=3),
        "evaluate_every": 2,
        "checkpoint_every": 1,
    }
    return experiment(replicas, **{**given, **parts})


@pytest.fixture(scope="module")
def runs(cpus, tmp_path_factory):
    """The same training on any number of replicas: 0 is one device."""
    folder = tmp_path_factory.mktemp("runs")
    return functools.cache(lambda count: train(with_all(count), folder / str(count)))


def found(run):
    """Figures of diagnostics by step and tag, each reduced and by replica."""
    figures = {}
    for record in run.metrics():
        if record.tag.startswith("diagnostics/"):
            figures[record.step, record.tag.removeprefix("diagnostics/")] = (record.reduced, record.replicas)
    return figures


@pytest.mark.slow
def test_reduced_figures_are_the_same_on_one_device_and_on_two_replicas(runs):
    one, two = found(runs(0)), found(runs(2))
    assert list(one) == list(two)
    assert {name.split("/")[0] for _, name in one} == set(ALL)
    for key, (value, _) in one.items():
        assert two[key][0] == pytest.approx(value, rel=2e-4, abs=1e-6), key
    assert all(len(replicas) <= 1 for _, replicas in one.values())


def test_figures_of_replicas_are_those_of_their_shares(runs):
    figures = found(runs(2))
    shared = {key: values for key, values in figures.items() if values[1]}
    assert {name for _, name in shared} == {
        "gradient_norms/decades_per_layer",
        *(
            f"gradient_norms/{by}/{name}"
            for by in ("activations", "weights")
            for name in ("hidden_1", "hidden_2", "score")
        ),
        *(f"slopes/{at}/mean" for at in ("real", "fake", "interpolated")),
    }
    assert all(len(values) == 2 for _, values in shared.values())
    for (_, name), (reduced, replicas) in shared.items():
        if name.startswith(("slopes", "gradient_norms/activations")):
            assert reduced == pytest.approx(np.mean(replicas), rel=1e-6)
    assert any(abs(a - b) > 1e-4 for _, (a, b) in shared.values())


def test_each_looks_at_its_interval_and_at_the_end(runs):
    steps = {}
    for step, name in found(runs(2)):
        steps.setdefault(name.split("/")[0], set()).add(step)
    assert steps == {name: {3, 4} if name == "slopes" else {2, 4} for name in ALL}


def test_run_json_has_the_last_figures_and_training_metrics_stay_apart(runs):
    info, figures = runs(2).info, found(runs(2))
    assert info["diagnostics"] == {name: value for (step, name), (value, _) in figures.items() if step == 4}
    assert not any("diagnostics" in tag for tag in info["metrics"])


def test_pictures_are_in_the_run_and_in_tensorboard(runs):
    path = runs(2).path / "diagnostics"
    pictures = {"gradient_norms/depth": (700, 450), "weights/all": (700, 450), "surface/scores": (720, 600)}
    written = {str(file.relative_to(path)) for file in path.rglob("*.png")}
    assert written == {f"{name}/step-0000000{step}.png" for name in pictures for step in (2, 4)}
    events = EventAccumulator(str(runs(2).path), size_guidance={"images": 0}).Reload()
    for name, size in pictures.items():
        shown = events.Images(f"diagnostics/{name}")
        assert [event.step for event in shown] == [2, 4]
        assert Image.open(io.BytesIO(shown[1].encoded_image_string)).size == size
        assert (path / name / "step-00000004.png").read_bytes() == shown[1].encoded_image_string


def test_tensorboard_has_curves_of_each_replica_histograms_and_a_chart(runs):
    events = EventAccumulator(str(runs(2).path), size_guidance={"tensors": 0}).Reload()
    figures = found(runs(2))
    for i, tag in enumerate(("diagnostics/", "replica/0/diagnostics/", "replica/1/diagnostics/")):
        (value,) = [e.value for e in events.Scalars(f"{tag}slopes/real/mean") if e.step == 4]
        reduced, replicas = figures[4, "slopes/real/mean"]
        assert value == pytest.approx((reduced, *replicas)[i], rel=1e-6)
    bins = events.Tensors("diagnostics/weights/hidden_1/kernel")[-1].tensor_proto
    counts = np.frombuffer(bins.tensor_content, np.float64).reshape(-1, 3)[:, 2]
    assert counts.sum() == 2 * 8
    layout = layout_pb2.Layout.FromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    charts = {chart.title: list(chart.multiline.tag) for category in layout.category for chart in category.chart}
    tag = "diagnostics/slopes/real/mean"
    assert charts[tag] == [f"^{tag}$", rf"^replica/\d+/{tag}$"]
    assert "diagnostics/slopes/real/max" not in charts


@pytest.mark.slow
def test_a_resumed_run_finds_the_same(runs, tmp_path):
    run = start.train(with_all(2), tmp_path / "run", as_run=ganlab.Run, stop_at=3)
    assert (run.info["status"], run.info["step"]) == ("interrupted", 3)
    # The work due at step 3 is left to the resumed run.
    assert {step for step, _ in found(run)} == {2}
    train(with_all(2), run.path, resume=True)
    assert found(run) == found(runs(2))
    for name in ("surface/scores", "gradient_norms/depth"):
        file = f"diagnostics/{name}/step-00000004.png"
        assert (run.path / file).read_bytes() == (runs(2).path / file).read_bytes()


@pytest.mark.slow
def test_looking_does_not_change_training(runs, tmp_path):
    plain = train(with_all(2, diagnostics=[]), tmp_path / "run")
    ours = [record for record in runs(2).metrics() if not record.tag.startswith("diagnostics/")]
    assert plain.metrics() == ours


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "rate", "steps", "said"),
    [
        # Steps of a quarter of the limit: all weights are at one end or on their way to the other.
        (
            *(0.2, 0.05, 10),
            {"weight_clipping": "at the clipping limit 0.2", "weights": "within 1% of the largest, 0.2"},
        ),
        # Kernels of eight inputs that shrink a signal to a fortieth at most.
        (0.003, 0.003, 4, {"gradient_norms": "they vanish", "slopes": "held back too much"}),
    ],
)
def test_health_names_what_clipping_does(limit, rate, steps, said, tmp_path):
    parts = {
        "constraints": [component("constraints", "weight_clipping", limit=limit)],
        "critic_optimizer": component("optimizers", "adam", learning_rate=rate),
        "diagnostics": [component("diagnostics", name) for name in ("gradient_norms", "weights", "slopes")],
        "critic_steps": 5,
        "steps": steps,
        "evaluate_every": steps // 2,
    }
    run = train(experiment(0, **parts), tmp_path / "run")
    complaints = dict(complaint.split(": ", 1) for complaint in run.info["health"])
    for name, words in said.items():
        assert words in complaints[name]
        assert "constraints." in complaints[name]
    assert [step for step, _ in texts(run, "health")] == [steps // 2, steps]
    assert texts(run, "health")[-1][1].decode() == "\n".join(f"- {complaint}" for complaint in run.info["health"])


@pytest.mark.slow
def test_health_of_a_sound_run_is_empty(tmp_path):
    parts = {
        "constraints": [component("constraints", "gradient_penalty", weight=1.0)],
        "critic_optimizer": component("optimizers", "adam", learning_rate=0.01),
        "diagnostics": diagnostics(),
        "critic_steps": 5,
        "steps": 60,
        "evaluate_every": 0,
    }
    run = train(experiment(0, **parts), tmp_path / "run")
    assert run.info["health"] == []
    assert texts(run, "health") == [(60, b"Nothing found.")]


class Odd(ganlab.Diagnostic):
    """Returns the given findings, from a step on."""

    def __init__(self, findings, *, every=0, since=0):
        self.findings, self.every, self.since = findings, every, since

    def look(self, critic):
        if critic.step < self.since:
            return ganlab.Findings()
        return self.findings(critic) if callable(self.findings) else self.findings


def fails(critic):
    raise ValueError("no figure today")


@pytest.mark.parametrize(
    ("diagnostic", "error", "message"),
    [
        (Odd(fails), ganlab.PluginError, r"diagnostics\.odd failed in look: ValueError: no figure today"),
        (Odd({"a": 1.0}), ganlab.ContractError, r"Diagnostic odd returned \{'a': 1\.0\} from look; it must return a "),
        (Odd(ganlab.Findings({"a": "b"})), ganlab.ContractError, r"must be a dict of numbers"),
        (Odd(ganlab.Findings({"a": 1.0}, {"a": [1, 2]})), ganlab.ContractError, r"2 replicas' values of 'a'; it must"),
        (Odd(ganlab.Findings({}, {"a": [1, 2]})), ganlab.ContractError, r"under a name that is also in figures"),
        (Odd(ganlab.Findings(), every=-1), ganlab.ContractError, r"every = -1; it must be a whole number"),
    ],
)
def test_diagnostic_that_cannot_work_leaves_no_run(diagnostic, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train(experiment(0, diagnostics=[diagnostic], evaluate_every=0), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_part_that_is_not_a_diagnostic_is_refused():
    with pytest.raises(ganlab.ConfigError, match=r"experiment\.diagnostics is .*must be a ganlab\.Diagnostic"):
        experiment(0, diagnostics=[component("constraints", "gradient_penalty")])


def test_two_diagnostics_of_one_name_get_distinct_names(tmp_path):
    twice = [Odd(ganlab.Findings({"a": 1.0})), Odd(ganlab.Findings({"a": np.nan}))]
    run = train(experiment(0, diagnostics=twice, steps=1), tmp_path / "run")
    assert list(found(run)) == [(1, "odd/a"), (1, "odd_2/a")]
    assert np.isnan(run.info["diagnostics"]["odd_2/a"])


class FarAway(ganlab.Dataset):
    """Points whose scores are large beside their differences: bfloat16 rounds them by more than a distance."""

    sample_shape = (2,)

    def examples(self, numbers, seed):
        return 200.0 + ganlab.functional.example_normal(numbers, 2, seed)


def of_numpy(critic):
    """How far scores, gradients and activations are from float64's, relative to the largest."""
    x, weights = critic.real.astype(np.float64), {name: w.astype(np.float64) for name, w in critic.effective.items()}
    names = sorted(name.split("/")[0] for name in weights if name.endswith("kernel"))
    hidden, slopes = x, np.eye(2)[None]
    for name in names[:-1]:
        hidden = np.maximum(hidden @ weights[f"{name}/kernel"] + weights[f"{name}/bias"], 0)
        slopes = slopes @ weights[f"{name}/kernel"] * (hidden > 0)[:, None]
    kernel = weights[f"{names[-1]}/kernel"]
    expected = {"scores": (hidden @ kernel + weights[f"{names[-1]}/bias"])[:, 0], "slopes": (slopes @ kernel)[:, :, 0]}
    got = {"scores": critic.scores(critic.real), "slopes": critic.input_gradients(critic.real)}
    last = list(critic.activations(critic.real))[-2]
    expected["hidden"], got["hidden"] = hidden, critic.activations(critic.real)[last]
    return ganlab.Findings({k: float(np.abs(got[k] - y).max() / np.abs(y).max()) for k, y in expected.items()})


@pytest.mark.parametrize("precision", ["float32", "tensorfloat32", "mixed_bfloat16"])
def test_they_look_in_float32(precision, tmp_path):
    parts = {
        "dataset": FarAway(),
        "architecture": component("architectures", "mlp", width=8, depth=2, activation="relu", latent_dim=3),
        "constraints": [component("constraints", "spectral_norm")],
        "diagnostics": [component("diagnostics", "lipschitz_interval"), Odd(of_numpy)],
    }
    run = train(experiment(0, precision=precision, **parts), tmp_path / "run")
    figures = run.info["diagnostics"]
    assert figures["lipschitz_interval/lower"] <= figures["lipschitz_interval/upper"] * (1 + 1e-3)
    assert run.info["health"] == []
    assert [value for name, value in figures.items() if name.startswith("odd/") and not value < 1e-4] == []
