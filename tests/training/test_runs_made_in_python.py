"""Runs whose experiments were made in Python: what is done with them later trains the same, or is refused by name."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from ganlab_verify.testing.parts import Wasserstein
from small import Layers, Points, constraint, small

import ganlab
from ganlab import exporting
from ganlab.cli import cli
from ganlab.functional import example_norm
from ganlab.plugins import manager as plugins
from ganlab.training.checkpoints import Checkpoints

pytestmark = pytest.mark.usefixtures("cpus")

RING = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)

PLUGIN = """
import tensorflow as tf
import ganlab

class Toward(ganlab.Constraint):
    '''Pulls the critic's mean score toward numbers, or makes other constraints' penalties larger.'''

    def __init__(self, *, numbers=(0.0,), inner=()):
        self.numbers, self.inner = numbers, tuple(inner)

    def penalty(self, critic, batch, state, replica):
        if self.inner:
            return sum(2.0 * inner.penalty(critic, batch, state, replica) for inner in self.inner)
        total = sum(tf.reduce_sum(number) for number in self.numbers)
        return (critic(batch.real) - tf.cast(total, tf.float32)) ** 2

@ganlab.hookimpl
def ganlab_constraints():
    return {"toward": Toward}
"""


CELL = """
class Typed(ganlab.Constraint):
    def penalty(self, critic, batch, state, replica):
        return critic(batch.real) ** 2
"""


class PairSlope(ganlab.Constraint):
    def __init__(self, *, weight=10.0):
        self.weight = weight

    def penalty(self, critic, batch, state, replica):
        rise = tf.abs(critic(batch.real) - critic(batch.fake))
        return self.weight * tf.nn.relu(rise / example_norm(batch.real - batch.fake) - 0.1) ** 2


class Doubled(ganlab.Constraint):
    """Changes what draws: without it, a generator's weights are another generator."""

    def reparameterize(self, weights, state):
        return {name: 2.0 * value for name, value in weights.items()}


class Labelled(Points):
    classes = 2

    def labels(self, numbers):
        return numbers % 2


class Shift(ganlab.Augmentation):
    def apply(self, x, state, replica):
        return x + 0.5


class Spread(ganlab.Evaluator):
    def evaluate(self, samples, dataset, run):
        return {"deviation": float(np.std(samples(64, 0)))}


class Falling(ganlab.Schedule):
    def __init__(self, start):
        self.start = start

    def value(self, step, steps):
        return self.start / (1.0 + tf.cast(step, tf.float32))


def adam(**arguments):
    return ganlab.component("optimizers", "adam")(**arguments)


def conditional():
    return ganlab.component("architectures", "mlp")(width=4, depth=1, latent_dim=3, labels="projection")


def wide(width):
    def generator(x):
        return keras.layers.Dense(2)(keras.layers.Dense(width, activation="tanh")(x))

    return generator


def typed(cell=CELL):
    """A constraint whose class was typed into a notebook's cell: no file has its code."""
    names = {"__name__": "__main__", "ganlab": ganlab}
    exec(cell, names)
    return names["Typed"]()


def toward_inner():
    """A constraint made with a list, which is the caller's: the arguments are already recorded."""
    inner = [constraint("gradient_penalty", weight=3.0)]
    made = constraint("toward", inner=inner)
    inner.clear()
    return made


def other_parts():
    return {
        "loss": Wasserstein(),
        "critic_optimizer": keras.optimizers.Adam(0.01),
        "generator_optimizer": adam(learning_rate=Falling(0.1)),
        "strategy": tf.distribute.OneDeviceStrategy("CPU:0"),
        "evaluators": [Spread()],
        "augmentations": [Shift()],
    }


# The parts of each way, made anew at each call, and the names of what no file can say: a refusal must have one of them.
WAYS = {
    "registered": (lambda: {"constraints": [constraint("gradient_penalty")]},),
    "constraint": (lambda: {"constraints": [constraint("gradient_penalty"), PairSlope(weight=3.0)]}, "PairSlope"),
    "dataset": (lambda: {"dataset": Points(RING)}, "Points"),
    "architecture": (lambda: {"architecture": Layers()}, "Layers"),
    "labels": (lambda: {"dataset": Labelled(RING), "architecture": conditional()}, "Labelled"),
    "generator constraint": (lambda: {"generator_constraints": [Doubled()], "ema_decay": 0.5}, "Doubled"),
    "closure": (lambda: {"architecture": Layers(generator=wide(5))}, "Layers"),
    "the other parts": (other_parts, "Wasserstein", "Adam", "Falling", "OneDeviceStrategy", "Spread", "Shift"),
    "arrays": (
        lambda: {"constraints": [constraint("toward", numbers=n) for n in (np.array([1.0, 0.5]), [np.array([3.0])])]},
        "ndarray",
        "ndarray_2",
    ),
    "nested": (lambda: {"constraints": [constraint("toward", inner=[PairSlope()])]}, "PairSlope"),
    "list": (lambda: {"constraints": [constraint("toward", numbers=[np.array([3.0])])]}, "ndarray"),
    "inner": (lambda: {"constraints": [toward_inner()]},),
    "plugin": (lambda: {"constraints": [constraint("toward", numbers=(1.0, 2.0))]},),
    "notebook": (lambda: {"constraints": [typed()]}, "Typed"),
}
NO_GENERATOR = ("architecture", "closure", "generator constraint")
STEPS = 6


def experiment(way, **parts):
    return small(**{"steps": STEPS, "checkpoint_every": 3, "log_every": 2, **WAYS[way][0](), **parts})


def rows(run):
    return (run.path / "metrics.jsonl").read_bytes()


def invoke(*arguments):
    with plugins.using():
        found = CliRunner().invoke(cli, [*map(str, arguments)])
    return found.exit_code, found.output


@pytest.fixture
def plugin(tmp_path, fresh_plugins):
    """A local plugin, in use."""
    file = tmp_path / "plugin" / "ganlab_plugins.py"
    file.parent.mkdir()
    file.write_text(PLUGIN)
    ganlab.use_plugin_file(file)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whatever_is_done_with_a_run_trains_the_same_or_is_refused_by_name(way, tmp_path, plugin):
    run = ganlab.train(experiment(way), tmp_path / "e" / "run")
    names = WAYS[way][1:]
    assert all(f"%only_in_python/{name}" in run.config for name in names)

    # The run that was just trained has its objects, and what it forks has them too.
    twin = run.fork(at=4)
    assert twin.path.parent == run.path.parent
    assert rows(twin) == rows(run)
    assert twin.replay(6).differing == []
    samples = exporting.draw(run, 5, seed=1).samples

    # Opened again it has not; it takes them from whoever has made them again.
    later = ganlab.Run(run.path)
    again = {"experiment": experiment(way)} if names else {}
    assert rows(later.fork(tmp_path / "given", at=4, **again)) == rows(run)
    assert later.replay(6, **again).differing == []
    assert later.generator(**again).count_params() == run.generator().count_params()
    if way in NO_GENERATOR:
        with pytest.raises(ganlab.ConfigError, match=f"{names[0]!r}"):
            later.generator()
        later = later.given(*again.values())
    np.testing.assert_array_equal(exporting.draw(later, 5, seed=1).samples, samples)
    assert exporting.export(later, tmp_path / "exported")["step"] == STEPS

    # A run that was interrupted resumes with the same objects.
    stopped = shutil.copytree(run.path, tmp_path / "e" / "stopped")
    shutil.rmtree(Checkpoints(stopped / "checkpoints").latest().path)
    ganlab.Run(stopped).update(status="interrupted", step=3)
    asked = {
        "fork": ("fork", run.path, "--at", 4, "--name", "forked"),
        "replay": ("replay", run.path, "--step", 4),
        "bisect": ("bisect", run.path, "critic/loss nonfinite"),
        "run": ("run", "--gin", run.path / "config.gin", "--runs", tmp_path / "runs", "--name", "again"),
        "resume": ("run", "--resume", stopped),
    }
    for what, arguments in asked.items():
        code, printed = invoke(*arguments, "--plugin-file", plugin)
        if names:
            assert (code, any(f"{name!r}" in printed for name in names)) == (2, True), f"{what}: {printed}"
        else:
            assert code == (1 if what == "bisect" else 0), f"{what}: {printed}"
    resumed = ganlab.train(experiment(way), stopped, resume=True) if names else ganlab.Run(stopped)
    assert rows(resumed) == rows(run)
    if not names:
        assert rows(ganlab.Run(tmp_path / "e" / "forked")) == rows(run)
        assert rows(ganlab.Run(tmp_path / "runs" / "config" / "again")) == rows(run)


@pytest.fixture(scope="module")
def run(cpus, tmp_path_factory):
    """A run of constraints, a dataset of points and a generator of a width, opened again."""
    return ganlab.Run(ganlab.train(small(**own_parts()), tmp_path_factory.mktemp("given") / "run").path)


def own_parts():
    return {
        "constraints": [PairSlope(weight=3.0), typed()],
        "dataset": Points(RING),
        "architecture": Layers(generator=wide(5)),
        "critic_optimizer": keras.optimizers.SGD(0.01),
        "steps": 2,
    }


OTHERS = {
    "constraint's argument": (lambda: {"constraints": [PairSlope(weight=4.0), typed()]}, r"weight=3\.0.*weight=4\.0"),
    "no constraint": (lambda: {"constraints": []}, r"'PairSlope\(weight=3\.0\), Typed\(\)', and now not set"),
    "another constraint": (lambda: {"constraints": [constraint("gradient_penalty")]}, "and now 'gradient_penalty'"),
    "code": (
        lambda: {"constraints": [PairSlope(weight=3.0), typed(CELL.replace("2", "4"))]},
        r"code of __main__\.Typed",
    ),
    "values of the data": (lambda: {"dataset": Points(RING + 1.0)}, "data of Points, rows"),
    "number of the data": (lambda: {"dataset": Points(RING[:32])}, "data of Points, size: 64, and now 32"),
    "labels": (lambda: {"dataset": Labelled(RING), "architecture": conditional()}, "Labelled"),
    "generator constraint": (lambda: {"generator_constraints": [Doubled()], "ema_decay": 0.5}, "Doubled"),
    "closure": (lambda: {"architecture": Layers(generator=wide(6))}, r"width=5.*width=6"),
    "optimizer": (lambda: {"critic_optimizer": keras.optimizers.SGD(0.02)}, r"critic_optimizer"),
    "plain setting": (lambda: {"batch_size": 16}, "experiment.batch_size: 12, and now 16"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_experiment_than_the_runs_is_refused(run, tmp_path, other):
    changed, message = OTHERS[other]
    assert run.given(small(**own_parts())).recipe().arguments["steps"] == 2
    wrong = small(**{**own_parts(), **changed()})
    for do in (
        lambda: run.fork(tmp_path / "twin", at=1, experiment=wrong),
        lambda: run.replay(1, experiment=wrong),
        lambda: run.bisect("critic/loss > 1", experiment=wrong),
        lambda: run.evaluate(["exact_w1"], experiment=wrong),
        lambda: run.certify(experiment=wrong),
        lambda: run.certify_distance(experiment=wrong),
        lambda: run.generator(experiment=wrong),
    ):
        with pytest.raises(ganlab.RunError, match=f"(?s)was not trained with this experiment.*{message}"):
            do()
    assert not (tmp_path / "twin").exists()


@pytest.mark.parametrize("wrong", ["quickstart", 5, PairSlope])
def test_what_is_no_experiment_is_refused(run, wrong):
    with pytest.raises(ganlab.ConfigError, match="must be the experiment that the run was trained with"):
        run.replay(1, experiment=wrong)


def test_data_that_changed_in_place_are_not_trained_on(tmp_path):
    points = RING.copy()
    run = ganlab.train(small(steps=2, dataset=Points(points)), tmp_path / "run")
    points += 1.0
    with pytest.raises(ganlab.RunError, match="was trained on other data than its experiment has now: data of Points"):
        run.replay(2)


def test_a_component_that_was_changed_after_it_was_made_is_refused(tmp_path):
    penalty = constraint("gradient_penalty", weight=10.0)
    penalty.weight = 1.0
    message = r"constraints\.gradient_penalty\.weight was 10\.0 when it was made and is 1\.0 now"
    with pytest.raises(ganlab.ConfigError, match=message):
        ganlab.train(small(constraints=[penalty]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_file_without_the_line_is_not_the_runs(run, tmp_path):
    copy = shutil.copytree(run.path, tmp_path / "copy")
    for name in ("config.gin", "operative.gin"):
        shutil.copy(copy / name, tmp_path)
        code, printed = invoke("run", "--gin", tmp_path / name, "--runs", tmp_path / "runs")
        assert (code, "'PairSlope'" in printed or "'Points'" in printed) == (2, True), printed
    text = (copy / "config.gin").read_text()
    plain = "experiment.dataset = @datasets.gaussian_ring()\nexperiment.architecture = @architectures.mlp()\n"
    plain += "experiment.critic_optimizer = @optimizers.adam()\n"
    kept = [line for line in text.splitlines() if "only_in_python" not in line]
    (copy / "config.gin").write_text(plain + "\n".join(kept) + "\n")
    for again in (lambda: ganlab.Run(copy).replay(1), lambda: ganlab.Run(copy).fork(tmp_path / "twin", at=1)):
        with pytest.raises(ganlab.RunError, match=r"other settings than its config.gin has now: .*'PairSlope"):
            again()


@pytest.mark.slow
def test_a_run_with_a_dataset_of_objects_can_be_measured(tmp_path):
    made = small(steps=2, dataset=Points(RING), constraints=[PairSlope()])
    run = ganlab.train(made, tmp_path / "run")
    later = ganlab.Run(run.path)
    for each, again in ((run, {}), (later, {"experiment": made})):
        assert each.evaluate(["exact_w1"], **again)["exact_w1/distance"] > 0
        assert each.certify(seconds=1.0, **again).lower > 0
        assert each.certify_distance(samples=64, seconds=1.0, **again).interval.upper > 0
    for refused in (lambda: later.evaluate(["exact_w1"]), later.certify, later.certify_distance):
        with pytest.raises(ganlab.ConfigError, match=r"'(Points|PairSlope)', which no file can make again"):
            refused()
    with pytest.warns(UserWarning, match=r"The picture shows no real points\. .*'Points'"):
        assert invoke("sample", run.path, "-o", tmp_path / "points.png")[0] == 0
    # A constraint of the critic does not matter to samples.
    other = ganlab.Run(ganlab.train(small(steps=2, constraints=[PairSlope()]), tmp_path / "other").path)
    assert other.evaluate(["exact_w1"])["exact_w1/distance"] > 0


@pytest.mark.slow
def test_an_experiment_file_is_trained_as_sweeps_take_it(tmp_path, plugin):
    ring = tmp_path / "files" / "ring.gin"
    ring.parent.mkdir()
    lines = ["include 'base/toy.gin'", "experiment.dataset = @datasets.gaussian_ring()", "experiment.steps = 5"]
    lines += ["experiment.constraints = [@constraints.beside()]", "experiment.batch_size = 8"]
    ring.write_text("\n".join(lines))
    (ring.parent / "more.gin").write_text(
        "experiment.steps = 2\nexperiment.evaluators = []\narchitectures.mlp.width = 4"
    )
    (ring.parent / "ganlab_plugins.py").write_text(PLUGIN.replace("toward", "beside"))
    run = ganlab.train([ring, ring.parent / "more.gin"], tmp_path / "run", params="experiment.critic_steps=1")
    settings = run.info["settings"]
    found = [settings[name] for name in ("constraints", "experiment.steps", "experiment.critic_steps")]
    assert (found, run.info["status"]) == (["beside", 2, 1], "completed")
    assert run.replay(2).differing == []
    # Without a plugin file beside it, that in use stays.
    ganlab.use_plugin_file(plugin)
    ring.write_text(ring.read_text().replace("beside", "toward"))
    (ring.parent / "ganlab_plugins.py").unlink()
    with pytest.raises(ganlab.ConfigError, match="stepz"):
        ganlab.train(ring, tmp_path / "none", params=["experiment.stepz=1"])
    assert not (tmp_path / "none").exists()
    with pytest.raises(ganlab.ConfigError, match=r"params = .* are for experiment files"):
        ganlab.train(run.experiment, tmp_path / "none", params=["experiment.steps=1"])
