"""Guards that stop a run, and guards that warn."""

import json

import numpy as np
import pytest
import tensorflow as tf
from small import constraint, small

import ganlab
from ganlab.telemetry import Record
from ganlab.training.graph.guards import Sums, Warnings, check_replicas, checksum
from ganlab.training.graph.replica import Metric
from ganlab.training.graph.stack import ConstraintStack
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


class Drifting(ganlab.Constraint):
    """A plugin that breaks its contract: its state depends on the replica."""

    def initial_state(self, weights):
        return {"own": tf.constant(0.0)}

    def advance(self, weights, state, batch, replica):
        return {"own": tf.reduce_mean(batch.real)}


def rows(tag, values):
    return [[Record(step, tag, value, (value,))] for step, value in enumerate(values, start=1)]


def test_checksum_distinguishes_bits():
    one = tf.constant([1.0, 2.0])
    assert int(checksum(one)) == int(checksum(tf.constant([1.0, 2.0])))
    assert int(checksum(one)) != int(checksum(tf.constant([1.0, np.nextafter(np.float32(2), np.float32(3))])))
    assert int(checksum(tf.constant([0.0]))) != int(checksum(tf.constant([-0.0])))
    assert int(checksum(tf.constant([7, 9], tf.int64))) == 16


@pytest.mark.slow
def test_replicas_of_a_sound_run_hold_equal_bits():
    trainer = Trainer(small(2, constraints=[constraint("spectral_norm"), constraint("gradient_penalty")]))
    trainer.train(3)
    assert trainer.sums.bits.shape == trainer.sums.magnitudes.shape == (2, len(trainer.state.variables()))
    np.testing.assert_array_equal(trainer.sums.bits[0], trainer.sums.bits[1])
    assert check_replicas(list(trainer.state.variables()), trainer.sums, 3) == ""


def test_rounding_on_unlike_devices_is_a_warning_and_more_is_not():
    bits = np.array([[1, 2], [1, 3]])
    warning = check_replicas(["a", "b"], Sums(bits, np.array([[5.0, 7.0], [5.0, 7.0001]])), 9)
    assert "differ by rounding" in warning
    for other in (7.1, np.nan):
        with pytest.raises(ganlab.TrainingFailedError, match="different values of b at step 9"):
            check_replicas(["a", "b"], Sums(bits, np.array([[5.0, 7.0], [5.0, other]])), 9)


def test_replicas_that_drift_apart_stop_the_run(tmp_path):
    with pytest.raises(ganlab.TrainingFailedError) as caught:
        ganlab.train(small(2, constraints=[Drifting()], steps=4), tmp_path / "run")
    assert "constraints/drifting/state/own at step 1" in str(caught.value)
    assert "generator" not in str(caught.value)
    assert ganlab.Run(tmp_path / "run").info["status"] == "failed"


def rising(name, parameter):
    """Makes a constraint with a parameter that is 1 in the first step and then 10."""
    return lambda: constraint(name, **{parameter: ganlab.component("schedules", "linear")(start=1.0, end=10.0)})


@pytest.mark.parametrize(
    ("made", "tag", "value", "says"),
    [
        (lambda: constraint("gradient_penalty"), "gradient_penalty/slope", 2.5, "mean slope is 2.5"),
        (lambda: constraint("gradient_penalty"), "gradient_penalty/slope", 0.3, "flat"),
        (lambda: constraint("weight_clipping"), "weight_clipping/saturated", 0.8, "80% of the critic's weights"),
        (rising("gradient_penalty", "target"), "gradient_penalty/slope", 2.5, "2.5 where its target is 10, flat"),
        (rising("lipschitz_penalty", "target"), "lipschitz_penalty/slope", 30.0, "30 where 10 is allowed"),
        (rising("weight_clipping", "limit"), "weight_clipping/saturated", 0.8, "80% of the critic's weights"),
    ],
)
def test_a_constraint_that_fails_warns_once_after_ten_rows(made, tag, value, says):
    name = tag.split("/")[0]
    warnings = Warnings([ConstraintStack([made()], [name])], [Metric(f"constraints/{tag}")])
    seen = [list(warnings.row(row)) for row in rows(f"constraints/{tag}", [value] * 30)]
    assert seen[:9] == [[]] * 9
    assert len(seen[9]) == 1
    assert says in seen[9][0]
    assert seen[10:] == [[]] * 20


@pytest.mark.parametrize("kind", ["generator_constraints", "network_constraints/second"])
def test_a_constraint_of_another_network_warns_under_its_setting(kind):
    stacks = [ConstraintStack([], []), ConstraintStack([constraint("weight_clipping")], ["weight_clipping"], kind)]
    tag = f"{kind}/weight_clipping/saturated"
    warnings = Warnings(stacks, [Metric(tag)])
    (said,) = [said for row in rows(tag, [0.9] * 10) for said in warnings.row(row)]
    assert said.startswith(f"{kind}/weight_clipping: 90% of")
    assert warnings.complaints == [said]


def test_a_sound_constraint_does_not_warn():
    warnings = Warnings([ConstraintStack([constraint("lipschitz_penalty")], ["lipschitz_penalty"])], [])
    sound = rows("constraints/lipschitz_penalty/slope", [0.1, 1.0, 1.9] * 10)
    assert not [said for row in sound for said in warnings.row(row)]


def test_rows_without_a_constraints_metrics_neither_warn_nor_clear_it():
    tags = [Metric("constraints/gradient_penalty/slope", every=4), Metric("critic/loss")]
    warnings = Warnings([ConstraintStack([constraint("gradient_penalty")], ["gradient_penalty"])], tags)
    steep, bare = rows("constraints/gradient_penalty/slope", [5.0] * 10), rows("critic/loss", [1.0] * 10)
    said = [said for both in zip(steep, bare, strict=True) for row in both for said in warnings.row(row)]
    assert len(said) == 1


# Losses of rows, and the row at which a warning comes: never for sizes that are usual.
LOSSES = {
    "explodes": ([2.0] * 12 + [1900.0, 2100.0, 1e9], 13),
    "at once": ([1e12], 0),
    "at once, below zero": ([-1e12] * 3, 0),
    "in the third row": ([3.0, 2e4, 1e12], 1),
    "of a small one": ([0.1, -1500.0], 1),
    "late, below zero": ([1.0] * 11 + [-1001.0], 11),
    "large": ([999.0] * 12, None),
    "large from the second on": ([1.0, 900.0], None),
    "very large throughout": ([5e5] * 12, None),
    "falls to zero": ([-20.0] * 5 + [0.0] * 20, None),
}


@pytest.mark.parametrize("tag", ["critic/loss", "generator/loss"])
@pytest.mark.parametrize(("losses", "at"), LOSSES.values(), ids=LOSSES)
def test_loss_that_explodes_is_reported_once(tag, losses, at):
    warnings = Warnings([ConstraintStack([], [])], [])
    seen = [list(warnings.row(row)) for row in rows(tag, losses)]
    assert [bool(said) for said in seen] == [i == at for i in range(len(losses))]
    assert [complaint.split(": ")[0] for complaint in warnings.complaints] == [tag] * (at is not None)
    if at is not None:
        assert seen[at][0].startswith(f"{tag}: The {tag.split('/')[0]}")
        assert "experiment.constraints is empty" in seen[at][0]
    if at == 13:
        assert "2.1e+03 at step 14, 1050 times" in seen[at][0]


def test_loss_that_recovers_is_no_longer_reported_and_its_warning_stays():
    warnings = Warnings([ConstraintStack([], [])], [])
    said = [warning for row in rows("critic/loss", [1.0, 1e12, 1.0]) for warning in warnings.row(row)]
    assert (len(said), warnings.complaints) == (1, [])


@pytest.mark.parametrize(
    ("estimates", "ill"),
    [([1e-5], True), ([0.3, 1e-5, -1e-5, 1e-9], True), ([0.3, 1e-5, 1e-5], False), ([1e-5] * 9 + [2e-4], False)],
)
def test_critic_that_scores_everything_alike_is_reported(estimates, ill):
    warnings = Warnings([ConstraintStack([], [])], [])
    assert not [warning for row in rows("critic/wasserstein", estimates) for warning in warnings.row(row)]
    assert [said.split(": ")[0] for said in warnings.complaints] == ["critic/wasserstein"] * ill


@pytest.mark.parametrize(
    ("names", "tag", "value"),
    [(["gradient_penalty"], "constraints/gradient_penalty/slope", 2.5), ([], "critic/wasserstein", 1e-5)],
)
def test_resume_restores_warnings(names, tag, value):
    def made():
        return Warnings([ConstraintStack([constraint(name) for name in names], names)], [Metric(tag)])

    before, after = made(), made()
    seen = rows(tag, [value] * 12)
    assert not [said for row in seen[:7] for said in before.row(row)]
    after.resume(json.loads(json.dumps(before.state())))
    assert after.complaints == before.complaints != []
    assert [bool(list(after.row(row))) for row in seen[7:]] == [False, False, True, False, False]


@pytest.mark.parametrize("name", ["gradient_penalty", "dragan", "lipschitz_penalty"])
@pytest.mark.parametrize("target", [1.0, 0.25])
def test_slope_of_twice_its_target_is_reported_for_any_target(name, target):
    made = constraint(name, target=target)
    for factor in (1.999, 2.0, 2.001, 138.0):
        assert "slope" in made.diagnose({"slope": factor * target})
    assert made.diagnose({"slope": 1.5 * target}) is None
    assert constraint(name, target=0.0).diagnose({"slope": 0.1}) is None


def test_non_finite_metric_is_reported_and_reaches_no_plugin():
    made = constraint("gradient_penalty")
    warnings = Warnings([ConstraintStack([made], ["gp"])], [Metric("constraints/gp/slope")])
    for row in rows("constraints/gp/slope", [1.0, float("nan")]):
        assert list(warnings.row(row)) == []
    assert warnings.complaints[0].startswith("gp: slope: not finite")


def test_a_warning_is_in_run_json(tmp_path):
    parts = {"constraints": [constraint("weight_clipping", limit=1e-4)], "steps": 12, "log_every": 1}
    run = ganlab.train(small(1, **parts), tmp_path / "run")
    warning, vanished = run.info["warnings"]
    assert warning.startswith("weight_clipping: ")
    assert vanished.startswith("critic/wasserstein: The critic scores real and generated examples alike")
    # Health has both, as of the last row.
    assert [said.split(": ")[0] for said in run.info["health"]] == ["weight_clipping", "critic/wasserstein"]
    assert "at step 12." in run.info["health"][1]
    assert "at the clipping limit 0.0001" in warning
    # The figure itself, by numpy: the weights that the first update starts from.
    saturated = [r.reduced for r in run.metrics() if r.tag == "constraints/weight_clipping/saturated"]
    weights = np.concatenate([v.numpy().ravel() for v in TrainingState(small(1, **parts)).critic.weights.values()])
    assert saturated[0] == pytest.approx(np.mean(np.abs(weights) >= 0.99e-4), rel=1e-6)
    assert 0.5 < saturated[0] < 1.0
