"""The whole contract of constraints: the promises to each method, and the errors of constraints that break it."""

import re

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.testing.parts import Wasserstein
from right_constraints import Dragan, Frobenius
from small import assert_same, broken, constraint, distance, small, trained, values

import ganlab
from ganlab.functional import slopes
from ganlab.training.evaluation import Scorer
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


class MaxSlope(ganlab.Constraint):
    """The steepest slope of the global batch and the mean one, by collectives inside the penalty."""

    def penalty(self, critic, batch, state, replica):
        slope = slopes(critic, batch.fake)
        steepest, typical = replica.max(tf.reduce_max(slope)), replica.mean(tf.reduce_mean(slope))
        total = replica.sum(tf.reduce_sum(slope))
        value = tf.square(steepest - 1.0) + 0.1 * tf.square(typical) + 0.01 * tf.square(total / batch.size)
        return tf.fill([batch.real.shape[0]], value)


OWN = {"running": Dragan, "max_slope": MaxSlope}
EVERYTHING = ["weight_normalization", "running", "gradient_normalization", "orthogonal_regularization"]
STACKS = {
    "everything": EVERYTHING,
    "everything, the other way round": EVERYTHING[::-1],
    "collectives in a penalty": ["max_slope", "spectral_norm"],
    "two reparameterizations": ["spectral_norm", "weight_normalization", "weight_clipping"],
}


def stack(names):
    weights = {"orthogonal_regularization": {"weight": 0.1}}
    return [OWN[name]() if name in OWN else constraint(name, **weights.get(name, {})) for name in names]


@pytest.fixture(scope="module")
def trainings(cpus):
    """Trained stacks by name and replica count, made once."""
    made = {}

    def get(name, replicas):
        if (name, replicas) not in made:
            made[name, replicas] = trained(replicas, count=10, constraints=stack(STACKS[name]))
        return made[name, replicas]

    return get


@pytest.mark.parametrize(
    "name", [name if name == "everything" else pytest.param(name, marks=pytest.mark.slow) for name in STACKS]
)
def test_a_stack_trains_the_same_on_two_replicas(trainings, name):
    assert_same(trainings(name, 0), trainings(name, 2), rtol=2e-5, atol=2e-6)


def test_parameters_are_trained_and_state_is_kept(trainings):
    one = trainings("everything", 0)
    start = values(TrainingState(one.trainer.experiment))
    gains = [name for name in one.values if name.startswith("constraints/weight_normalization/parameters/")]
    assert len(gains) == 3
    for name in gains:
        assert not np.array_equal(one.values[name], start[name])
    # The deviation of the data, computed without TensorFlow: d' = d / 2 + std / 2.
    ring = ganlab.component("datasets", "gaussian_ring")()
    deviation = 0.0
    for update in range(10):
        batch = ring.examples(tf.range(12 * update, 12 * update + 12, dtype=tf.int64), 0).numpy()
        deviation = 0.5 * deviation + 0.5 * batch.std()
        np.testing.assert_allclose(one.metric("constraints/dragan/deviation")[update, 0], batch.std(), rtol=1e-5)
    np.testing.assert_allclose(one.values["constraints/dragan/state/deviation"], deviation, rtol=1e-5)
    assert one.values["constraints/dragan/state/updates"] == 10


def test_logged_metrics_are_reduced_as_asked(trainings):
    one, two = trainings("everything", 0), trainings("everything", 2)
    by = {reduce: f"constraints/dragan/slope_{reduce}" for reduce in ("mean", "max", "min", "sum")}
    assert {m.tag: m.reduce for m in two.trainer.metrics}.items() >= {tag: reduce for reduce, tag in by.items()}.items()
    whole = {reduce: one.metric(tag)[:, 0] for reduce, tag in by.items()}
    np.testing.assert_allclose(whole["sum"], 12 * whole["mean"], rtol=1e-5)
    np.testing.assert_allclose(two.metric(by["sum"]).sum(axis=1), whole["sum"], rtol=1e-5)
    np.testing.assert_allclose(two.metric(by["max"]).max(axis=1), whole["max"], rtol=1e-5)
    np.testing.assert_allclose(two.metric(by["min"]).min(axis=1), whole["min"], rtol=1e-5)
    assert (whole["min"] < whole["mean"]).all()
    assert (whole["mean"] < whole["max"]).all()


@pytest.mark.slow
def test_the_order_of_a_stack_matters(trainings):
    # Otherwise the stacks in both orders would not test the order.
    assert distance(trainings("everything", 0), trainings("everything, the other way round", 0)) > 1e-5


def test_a_bound_is_of_the_effective_weights():
    state = trained(0, count=3, constraints=[constraint("weight_normalization"), Frobenius()]).trainer.state
    # A kernel's effective columns have the gains as norms, so the kernel's Frobenius norm is theirs.
    bound = np.prod([np.linalg.norm(gain) for gain in state.critic.parameters[0].values()])
    assert Scorer(state).bounds()["frobenius"] == pytest.approx(bound, rel=1e-5)


def test_transformed_critic_has_no_bound_from_weights(trainings):
    assert Scorer(trainings("everything", 0).trainer.state).bounds() == {}


def test_scores_come_from_the_transformed_critic():
    # |critic / (slope + |critic|)| < 1 whatever the critic.
    state = TrainingState(small(0, constraints=[constraint("gradient_normalization")]))
    assert np.abs(Scorer(state)(100 * np.random.default_rng(0).normal(size=(50, 2)))).max() < 1


class TwoDraws(ganlab.Constraint):
    def initial_state(self, weights):
        return {"drawn": tf.zeros([12])}

    def advance(self, weights, state, batch, replica):
        return {"drawn": replica.normal([12])}

    def penalty(self, critic, batch, state, replica):
        replica.log("difference", tf.abs(replica.normal([12]) - state["drawn"]))
        replica.log("again", tf.abs(replica.normal([12]) - state["drawn"]))
        return tf.zeros([12])


def test_no_two_draws_of_an_update_are_the_same():
    # Two independent standard normals are 2 / sqrt(pi) = 1.13 apart on average.
    one = trained(0, count=20, constraints=[TwoDraws(), TwoDraws()])
    for name in ("twodraws", "twodraws_2"):
        for metric in ("difference", "again"):
            assert one.metric(f"constraints/{name}/{metric}").mean() == pytest.approx(1.13, abs=0.2)
    assert not np.allclose(
        one.values["constraints/twodraws/state/drawn"], one.values["constraints/twodraws_2/state/drawn"]
    )


def in_a_cond(self, critic, batch, state, replica):
    def logged():
        replica.log("slope", critic(batch.real))
        return tf.zeros([batch.real.shape[0]])

    return tf.cond(batch.step > 3, logged, lambda: tf.zeros([batch.real.shape[0]]))


def in_a_function(self, critic, batch, state, replica):
    @tf.function(autograph=False)
    def logged(x):
        replica.log("slope", x)
        return x

    return logged(batch.real[:, 0])


def twice(self, critic, batch, state, replica):
    replica.log("slope", tf.ones([]))
    replica.log("slope", tf.ones([]))


def one_state(self, weights):
    return {"u": tf.zeros([3])}


def renamed(self, weights, *_):
    return {"other": next(iter(weights.values()))}


def reshaped(self, weights, *_):
    return {name: tf.reshape(weight, [-1]) for name, weight in weights.items()}


def nothing(self, *_):
    return None


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"penalty": lambda self, c, batch, s, r: tf.reduce_mean(c(batch.real))}, r"penalty of shape \(\).*\(6,\)"),
        ({"penalty": lambda self, c, batch, s, r: batch.real}, r"penalty of shape \(6, 2\)"),
        ({"weight_penalty": lambda self, weights: tf.zeros([2])}, r"weight penalty of shape \(2,\).*scalar"),
        ({"reparameterize": renamed}, "names of the weights in reparameterize: .*'other'"),
        ({"project": renamed}, "names of the weights in project: .*'other'"),
        ({"reparameterize": reshaped}, r"in reparameterize.*shape \(16,\).*\(2, 8\)"),
        ({"project": reshaped}, r"in project.*shape \(16,\).*\(2, 8\)"),
        ({"reparameterize": nothing}, "reparameterize.*NoneType.*return"),
        ({"project": nothing}, "project.*NoneType.*return"),
        ({"parameters": nothing}, "parameters.*NoneType.*return"),
        ({"initial_state": nothing}, "initial_state.*NoneType.*return"),
        ({"initial_state": one_state, "advance": nothing}, "advance.*NoneType.*return"),
        ({"initial_state": one_state, "advance": lambda *_: {}}, r"state with \[\].*initial_state, \['u'\]"),
        ({"initial_state": one_state, "advance": lambda self, w, s, b, r: {**s, "v": s["u"]}}, "'v'"),
        ({"initial_state": one_state, "advance": lambda *_: {"u": tf.zeros([4])}}, r"'u' to shape \(4,\).*\(3,\)"),
        ({"initial_state": one_state, "advance": lambda *_: {"u": tf.zeros([3], tf.int32)}}, "'u' to.*int32.*float32"),
        ({"initial_state": one_state, "parameters": one_state}, r"\['u'\] both in parameters and in initial_state"),
        ({"penalty": in_a_cond}, "'slope' inside tf.cond, a loop or a nested tf.function"),
        ({"penalty": in_a_function}, "'slope' inside tf.cond, a loop or a nested tf.function"),
        ({"penalty": lambda self, c, b, s, r: r.log("x", b.real, reduce="median")}, "'x' with reduce='median'.*sum"),
        ({"penalty": twice}, "constraints/broken/slope' was logged twice in one update, the critic's"),
        ({"penalty": lambda self, c, b, s, r: r.normal([])}, r"numbers of shape \(\).*local batch, 6"),
        ({"penalty": lambda self, c, b, s, r: r.uniform([12, 2])}, r"numbers of shape \(12, 2\).*local batch, 6"),
        ({"penalty": lambda self, c, b, s, r: c(b.real[:3])}, r"penalty of shape \(3,\)"),
        (
            {"penalty": lambda self, c, b, s, r: tf.cast(c(b.real), tf.int32)},
            "penalty of dtype int32; it must be float32. Whole numbers have no gradient",
        ),
        ({"weight_penalty": lambda self, weights: tf.constant(1)}, "weight penalty of dtype int32; it must be float32"),
        (
            {"penalti": lambda self, critic, batch: 0.0},
            "'penalti', which nothing calls, and none of a constraint's. Did you mean 'penalty'.* They are advance, ",
        ),
        (
            {"transform": lambda self, critic: lambda x: critic(x)[:, None]},
            r"returned in transform gives the shape \(6, 1\) for \(6, 2\); it must",
        ),
        ({"transform": lambda self, critic: None}, "returned None in transform; it must return a"),
        (
            {"advance": lambda self, weights, state, batch, replica: replica.log("lipschitz_bound", 1.0) or {}},
            "logged 'lipschitz_bound', the name of what lipschitz_bound returns. Choose another one",
        ),
    ],
)
def test_breaking_the_contract_is_named(methods, message):
    with pytest.raises(ganlab.ContractError, match=f"(?i)broken.*{message}|^The metric .*{message}"):
        Trainer(small(0, batch_size=6, constraints=[broken(**methods)])).trace()


@pytest.mark.parametrize("part", ["critic", "generator"])
def test_a_loss_must_not_reduce(part):
    reduced = type("Reduced", (Wasserstein,), {part: lambda self, *scores: tf.reduce_mean(scores[-1])})
    with pytest.raises(ganlab.ContractError, match=rf"Loss Reduced.{part} returned the shape \(\).*\(12,\)"):
        Trainer(small(0, loss=reduced())).trace()


def test_jit_and_a_collective_in_a_penalty():
    with pytest.raises(ganlab.IncompatibleError, match=r"penalty of constraint maxslope communicates.*jit is 'on'"):
        Trainer(small(2, constraints=[MaxSlope()], jit="on")).trace()


def test_metrics_of_two_of_a_kind_have_names_of_their_own():
    three = [Frobenius(), constraint("gradient_penalty"), constraint("gradient_penalty", weight=1.0)]
    names = small(0, constraints=three).component_names("constraints")
    assert names == ["frobenius", "gradient_penalty", "gradient_penalty_2"]
    names = [type(name, (ganlab.Constraint,), {})() for name in ("foo_2", "foo", "foo", "foo_bar", "foo")]
    found = small(0, constraints=names).component_names("constraints")
    assert len(set(found)) == 5, found
    assert re.fullmatch(r"foo_\d", found[2])
