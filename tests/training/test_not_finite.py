"""Variables and data that are not finite end the run, are named, and never reach a checkpoint."""

import numpy as np
import pytest
import tensorflow as tf
from small import Points, constraint, small

import ganlab
from ganlab.run import train
from ganlab.training import start
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.guards import DivergedError, Sums, not_finite
from ganlab.training.graph.inputs import Inputs
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

# More rows than a picture shows, because those are checked before training.
ROWS, SHOWN, BATCH = 1500, 1000, 12


def rectified(**parts):
    """A critic of rectifiers, in whose scores NaN is 0, on points in an order of their own."""
    architecture = ganlab.component("architectures", "mlp")(width=8, depth=2, latent_dim=3)
    points = np.random.default_rng(0).normal(size=(ROWS, 2))
    given = {"dataset": Points(points), "architecture": architecture, "batch_size": BATCH, "checkpoint_every": 2}
    return small(parts.pop("replicas", 0), **{**given, **parts})


def with_a_bad_row(value=np.nan, *, iteration=5, python=False, **parts):
    """The same with a value that is not finite in a row that this iteration meets first; also returns the row."""
    experiment = rectified(**parts)
    met = Inputs(experiment).numbers(tf.constant(iteration, tf.int64), experiment.replicas - 1).numpy()
    row = next(int(number) for number in met if number >= SHOWN)
    points = np.random.default_rng(0).normal(size=(ROWS, 2))
    points[row, 1] = value
    return rectified(**{**parts, "dataset": Points(points, python=python)}), row


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("weight_clipping", "spectral_norm")]


@pytest.mark.parametrize("name", ["gradient_penalty", *SLOW])
def test_bad_row_met_later_is_named_and_no_checkpoint_holds_nan(name, tmp_path):
    experiment, row = with_a_bad_row(constraints=[constraint(name)])
    with pytest.raises(ganlab.TrainingFailedError) as caught:
        train(experiment, tmp_path / "run")
    said = str(caught.value)
    assert f"In iteration 6: Points gives values that are not finite (NaN or infinity), in example {row}." in said
    assert "learning rate" not in said
    assert "the variable critic/" in said
    run = ganlab.Run(tmp_path / "run")
    assert run.info["status"] == "failed"
    kept = Checkpoints(run.path / "checkpoints").all()
    assert [checkpoint.step for checkpoint in kept] == [2, 4]
    assert [checkpoint.not_finite() for checkpoint in kept] == [None, None]


@pytest.mark.parametrize(
    "parts",
    [{"value": -np.inf, "python": True}, {"replicas": 2, "iteration": 9, "critic_optimizer": "adam"}],
    ids=["infinity, through Python", "two replicas, in the midst of a chunk"],
)
def test_every_row_is_named(parts, tmp_path):
    if "critic_optimizer" in parts:
        parts = {**parts, "critic_optimizer": ganlab.component("optimizers", parts["critic_optimizer"])()}
    experiment, row = with_a_bad_row(constraints=[constraint("spectral_norm")], **parts)
    with pytest.raises(ganlab.TrainingFailedError, match=f"Points gives .* in example {row}\\."):
        Trainer(experiment).train(15)


def test_bad_row_of_the_first_iteration_is_named_before_training():
    experiment, row = with_a_bad_row(iteration=0)
    with pytest.raises(ganlab.ContractError) as caught:
        Trainer(experiment).trace()
    assert str(caught.value) == (
        f"Points gives values that are not finite (NaN or infinity), in example {row}. Fix the data, or leave such "
        "examples out."
    )


def test_bad_row_in_a_picture_is_named_before_anything_is_written(tmp_path):
    points = np.zeros((ROWS, 2))
    points[17] = np.inf
    with pytest.raises(ganlab.ContractError, match=r"Points gives values that are not finite .* in example 17\."):
        train(rectified(dataset=Points(points)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_variable_that_no_metric_shows_ends_the_run(tmp_path):
    averaged = small(ema_decay=0.9, checkpoint_every=2, log_every=3)
    name = next(name for name in Trainer(averaged).state.variables() if name.startswith("generator/average"))

    class Poisoned(Trainer):
        def train(self, count):
            if self.state.step >= 4:
                variable = self.state.variables()[name]
                variable.assign(tf.fill(variable.shape, tf.constant(np.nan, variable.dtype)))
            return super().train(count)

    with pytest.raises(DivergedError) as caught:
        start.train(averaged, tmp_path / "run", trainer=Poisoned)
    assert str(caught.value).startswith(f"The variable {name} is not finite at step ")
    assert "though every metric is: training diverged. The checkpoint of step 4 is kept. Lower the" in str(caught.value)
    run = ganlab.Run(tmp_path / "run")
    assert run.info["status"] == "diverged"
    assert Checkpoints(run.path / "checkpoints").latest().step == 4
    assert max(record.step for record in run.metrics()) == run.info["step"]


def test_non_finite_values_are_distinguished_from_large_ones():
    values = {
        "generator/weights/a": tf.Variable([np.nan, 1.0]),
        "critic/weights/large": tf.Variable([3e38, 3e38, -3e38]),  # whose sum is infinite
        "critic/weights/infinite": tf.Variable([1.0, -np.inf]),
        "constraints/a/state/least": tf.Variable([np.inf]),
        "constraints/a/state/nan": tf.Variable([np.inf, np.nan]),
        "critic/optimizer/0000": tf.Variable(3, dtype=tf.int64),
    }
    with np.errstate(over="ignore"):
        sums = [np.abs(value.numpy().astype(np.float32)).sum(dtype=np.float32) for value in values.values()]
    found = not_finite(
        values,
        Sums(np.zeros((2, 6)), np.array([sums, sums])),
        infinite=("constraints/a/state/least", "constraints/a/state/nan"),
    )
    # The critic's come before the generator's, because it begins there.
    assert found == ["critic/weights/infinite", "constraints/a/state/nan", "generator/weights/a"]


def test_a_constraint_may_begin_with_infinity():
    class Least(ganlab.Constraint):
        """Remembers the smallest slope so far; at first there is none."""

        def initial_state(self, critic):
            return {"least": tf.constant(np.inf)}

    trainer = Trainer(small(constraints=[Least()]))
    trainer.train(3)
    assert trainer.not_finite() == []


@pytest.mark.slow
def test_a_checkpoint_that_is_not_finite_is_not_resumed(tmp_path, capsys):
    experiment = small(steps=4, checkpoint_every=2)
    run = train(experiment, tmp_path / "run")
    trainer = Trainer(experiment)
    trainer.trace()
    name, variable = next((n, v) for n, v in trainer.state.variables().items() if n.startswith("critic/weights"))
    variable.assign(tf.fill(variable.shape, np.float32(np.nan)))
    pending = np.zeros((0, 1, len(trainer.metrics)), np.float32)
    checkpoints = Checkpoints(run.path / "checkpoints")
    checkpoints.save(4, trainer.state.variables(), pending, metrics=trainer.metrics, replicas=1)
    assert checkpoints.latest().not_finite() == name
    run.update(status="interrupted")
    resumed = train(experiment, tmp_path / "run", resume=True)
    assert resumed.info["status"] == "completed"
    assert f"step-00000004 is damaged: its variable {name} is not finite. It is not used." in capsys.readouterr().err
    assert checkpoints.latest().not_finite() is None


def test_the_guard_costs_nothing_on_the_host_per_step(monkeypatch):
    looked = []
    monkeypatch.setattr(Trainer, "not_finite", lambda self: looked.append(1) or [])
    Trainer(small()).train(50)
    assert len(looked) == 1
