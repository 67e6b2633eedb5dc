"""Distances, yardsticks and limits, on traces written by hand."""

import numpy as np
import pytest
from ganlab_verify.cases import Case
from ganlab_verify.comparing import compare
from ganlab_verify.explaining import explain
from ganlab_verify.trace import Iteration, Trace, apart

WITNESS = "constraints/witness/"
TAGS = [f"{WITNESS}noise", f"{WITNESS}examples", f"{WITNESS}samples", "critic/loss"]
KERNEL, BIAS, OUT = "critic/weights/kernel", "critic/weights/bias", "generator/weights/kernel"
MEAN, STATE = "generator/buffers/mean", "constraints/norm/state/u"
AVERAGED = "generator/average_buffers/mean"
GRADIENTS = {KERNEL: np.array([[3.0, 4.0], [1.0, 1.0]]), BIAS: np.array([[0.0], [2.0]]), OUT: np.array([[2.0]])}
PENALTY = {KERNEL: np.array([[1.0, -1.0], [0.0, 0.0]]), BIAS: np.array([[0.5], [0.0]])}
START = {
    KERNEL: np.ones(2, np.float32),
    BIAS: np.zeros(1, np.float32),
    OUT: np.ones(1, np.float32),
    MEAN: np.zeros(1, np.float32),
    AVERAGED: np.zeros(1, np.float32),
    STATE: np.ones(2, np.float32),
    "critic/optimizer/0000": np.asarray(0, np.int64),
}


def iteration(number, replicas, **changes):
    """Weights that have moved by 0.1 an iteration; metrics differ between replicas around the same mean."""
    spread = np.linspace(-1, 1, replicas) if replicas > 1 else np.zeros(1)
    metrics = np.stack([np.array([0.5, 0.25, 0.125, 2.0]) + s * 0.01 for s in spread]).astype(np.float32)
    moved = {name: value + (0.1 * number if value.dtype == np.float32 else number) for name, value in START.items()}
    given = {
        "metrics": metrics,
        "gradients": GRADIENTS,
        "applied": GRADIENTS,
        "repeated": frozenset(),
        "variables": {name: value.astype(START[name].dtype) for name, value in moved.items()},
    }
    return Iteration(**{**given, **changes})


def trace(replicas=1, *, lone=(), **changes):
    """Three iterations; `changes` by iteration: `trace(2, at_1={"gradients": ...})`."""
    done = [iteration(i, replicas, **changes.get(f"at_{i}", {})) for i in (1, 2, 3)]
    return Trace(replicas, TAGS, ["mean"] * 4, WITNESS, START, done, lone)


def scaled(values, factor):
    return {name: value * factor for name, value in values.items()}


def found(other, *, reference=None, **case):
    reference = reference or trace()
    return explain(Case(reference, other, compare([reference], [other]), **case))


def measure(measures, kind, group, iteration=1):
    (one,) = [m for m in measures if (m.kind, m.group, m.iteration) == (kind, group, iteration)]
    return one


def test_equal_trainings_have_no_distance():
    measures = compare([trace()], [trace()])
    assert {m.distance for m in measures} == {0.0}
    assert found(trace()) is None
    # Weights of two networks, a state, statistics, their average and a counter, before and after; gradients of two
    # networks, as handed over and as applied; four metrics.
    assert len(measures) == 6 + 3 * (6 + 2 * 2 + 4)


def test_a_gradients_distance_is_relative_to_the_norm_of_its_group():
    # The critic's gradients of both updates: 3, 4, 1, 1, 0, 2, whose norm is the square root of 31.
    other = {**GRADIENTS, BIAS: np.array([[1.0], [2.0]])}
    found = compare([trace()], [trace(at_1={"gradients": other})])
    assert measure(found, "gradient", "critic/weights").distance == pytest.approx(1 / np.sqrt(31))
    assert measure(found, "gradient", "critic/weights", 2).distance == 0
    assert measure(found, "gradient", "generator/weights").distance == 0


def test_a_variables_distance_is_relative_to_how_far_it_has_moved():
    # At iteration 2 the kernel's two numbers and the bias have moved by 0.2 each.
    changed = {**iteration(2, 1).variables, BIAS: np.array([0.26], np.float32)}
    found = compare([trace()], [trace(at_2={"variables": changed})])
    assert measure(found, "variable", "critic/weights", 2).distance == pytest.approx(
        0.06 / (0.2 * np.sqrt(3)), rel=1e-5
    )


def test_whole_numbers_are_a_group_of_their_own():
    changed = {**iteration(1, 1).variables, "critic/optimizer/0000": np.asarray(2, np.int64)}
    found = compare([trace()], [trace(at_1={"variables": changed})])
    assert measure(found, "variable", "critic/counters").distance == 1.0


def test_the_limit_is_thirty_yardsticks_between_a_floor_and_a_cap():
    def perturbed(by):
        return trace(at_2={"gradients": scaled(GRADIENTS, 1 + by)})

    def limits(by):
        found = compare([trace(), perturbed(by)], [trace(), trace()])
        return [measure(found, "gradient", "critic/weights", i).limit for i in (1, 2, 3)]

    assert limits(1e-8) == [1e-5, 1e-5, 1e-5]
    # A group that has drifted once keeps its wide limit.
    assert limits(1e-5) == [1e-5, pytest.approx(3e-4), pytest.approx(3e-4)]
    assert limits(1e-2) == [1e-5, 0.1, 0.1]  # 0.3 would hide a factor of two in a third of the loss
    assert limits(0.5) == [1e-5, None, None]  # chaos


def test_a_difference_from_one_start_is_not_a_departure_but_from_all_starts_it_is():
    off = trace(at_1={"gradients": scaled(GRADIENTS, 1.001)})
    accident = compare([trace()] * 3, [trace(), off, off])
    assert not any(m.departs for m in accident)
    assert any(m.departs for m in compare([trace()] * 3, [off] * 3))


def test_nan_departs():
    bad = trace(at_1={"gradients": scaled(GRADIENTS, np.nan)})
    assert measure(compare([trace()], [bad]), "gradient", "critic/weights").departs


@pytest.mark.parametrize(
    ("copies", "expected"),
    [([[3.0, 4.0], [3.0, 4.0]], 0.0), ([[3.0, 4.0], [3.0, 5.0]], 0.2), ([[3.0, 4.0], [3.0, 4.0], [3.0, 4.5]], 0.1)],
)
def test_copies_are_apart_by_the_largest_difference(copies, expected):
    assert apart([np.array(copy, np.float32) for copy in copies]) == pytest.approx(expected)


def test_copies_that_are_equal_but_not_bit_for_bit_are_apart():
    assert apart([np.array([0.0]), np.array([-0.0])]) != 0


# Explanations that need more replicas than the mutants have.


@pytest.mark.parametrize(
    ("factor", "repeated", "cause", "words"),
    [
        (4, frozenset(), "loss averaged over the replica", "It is 4 times what it should be"),
        (4, frozenset(GRADIENTS), "reduced twice", "It is 4 times what it should be, and every replica hands over"),
        (1 / 4, frozenset(), "mean instead of sum", "It is 1/4 of what it should be"),
        (3, frozenset(), "gradient of the replica's own", "not a multiple by the number of replicas (best 3"),
    ],
)
def test_factors_of_a_gradient(factor, repeated, cause, words):
    changes = {"gradients": scaled(GRADIENTS, factor), "repeated": repeated, "applied": scaled(GRADIENTS, factor)}
    finding = found(trace(4, at_1=changes))
    assert (finding.cause, finding.where, finding.iteration) == (cause, KERNEL, 1)
    assert finding.size == pytest.approx(abs(factor - 1))
    assert words in finding.words
    assert "update 1 of 2" in finding.words


@pytest.mark.parametrize(("factor", "words"), [(4, "counts 4 times what"), (1 / 4, "counts 1/4 of what")])
def test_a_scaled_part_of_the_gradient_is_explained(factor, words):
    without = {name: GRADIENTS[name] - PENALTY[name] for name in PENALTY} | {OUT: GRADIENTS[OUT]}
    mistaken = {name: without[name] + factor * PENALTY.get(name, 0) for name in without}
    other = trace(4, at_1={"gradients": mistaken})
    finding = found(other, without=lambda: {"weight penalty": GRADIENTS, "penalty": without})
    assert finding.cause == "penalty scaled by replicas"
    assert f"The penalty alone {words}" in finding.words


def test_a_right_gradient_that_is_applied_wrongly_is_explained():
    finding = found(trace(4, at_1={"applied": scaled(GRADIENTS, 1 / 4)}))
    assert finding.cause == "mean instead of sum"
    assert "1/4 of each, a mean over replicas instead of the sum" in finding.words


def test_a_gradient_that_departs_in_the_second_update_was_right_at_first():
    mistaken = {**GRADIENTS, KERNEL: np.array([[3.0, 4.0], [5.0, 5.0]])}
    finding = found(trace(4, at_1={"gradients": mistaken}))
    assert (finding.cause, finding.where) == ("after the first update", KERNEL)
    assert "at iteration 1, update 2 of 2" in finding.words


def test_weights_that_depart_alone_are_explained():
    changed = {**iteration(1, 2).variables, OUT: np.array([3.0], np.float32)}
    finding = found(trace(2, at_1={"variables": changed}))
    assert (finding.cause, finding.where, finding.size) == (
        "after the first update",
        "generator/weights",
        pytest.approx(19),
    )


def test_a_state_that_departs_equally_on_all_replicas_is_explained():
    changed = {**iteration(2, 2).variables, STATE: np.array([5.0, 5.0], np.float32)}
    finding = found(trace(2, at_2={"variables": changed}))
    assert (finding.cause, finding.iteration) == ("state reduced wrongly", 2)


def test_a_metric_that_is_off_by_the_number_of_replicas_is_explained():
    metrics = iteration(1, 2).metrics * np.array([1, 1, 1, 2], np.float32)
    finding = found(trace(2, at_1={"metrics": metrics}))
    assert (finding.cause, finding.where) == ("metric reduced wrongly", "critic/loss")
    assert "training is right and only the metric is not: it is off by a factor of 2" in finding.words


def test_examples_that_are_the_same_on_every_replica_are_explained():
    metrics = [iteration(i, 2).metrics.copy() for i in (1, 2, 3)]
    for one in metrics:
        one[:, 1] = 0.3
    finding = found(trace(2, **{f"at_{i}": {"metrics": one} for i, one in enumerate(metrics, start=1)}))
    assert (finding.cause, finding.where) == ("identical examples", "examples")


def test_copies_that_differ_are_a_mistake_even_if_the_first_replica_is_right():
    for name, cause in {
        MEAN: "unsynchronized statistics",
        AVERAGED: "unsynchronized statistics",
        STATE: "state advanced apart",
        KERNEL: "projection on some replicas",
        OUT: "updates apart",
    }.items():
        finding = found(trace(2, at_3={"apart": {name: 0.25}}), projecting=["clip"])
        assert (finding.cause, finding.where, finding.iteration, finding.size) == (cause, name, 3, 0.25)


def test_weights_that_differ_explain_states_that_do():
    finding = found(trace(2, at_1={"apart": {STATE: 0.5, MEAN: 0.5, OUT: 0.25}}))
    assert finding.cause == "updates apart"


def test_variables_outside_the_scope_are_explained():
    assert found(trace(2, lone=("critic/optimizer/0000",))).cause == "optimizer outside the scope"
    assert found(trace(2, lone=("generator/average/kernel",))).cause == "variables outside the scope"


@pytest.mark.parametrize(
    ("name", "by", "expected"),
    [(MEAN, 5e-5, False), (MEAN, 5e-3, True), (AVERAGED, 5e-5, False), (AVERAGED, 5e-3, True), (OUT, 5e-5, True)],
)
def test_moving_statistics_may_round_more_than_weights_but_not_by_a_percent(name, by, expected):
    after = iteration(1, 1).variables
    changed = {**after, name: after[name].astype(np.float64) + 0.1 * by}
    group = name.rpartition("/")[0]
    found = measure(compare([trace()], [trace(at_1={"variables": changed})]), "variable", group)
    assert found.distance == pytest.approx(by, rel=0.02)
    assert found.departs is expected
