"""Losses of pairs, of classes and of the whole batch, against loops in float64 and against scipy."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from alone import Alone
from making import loss
from scipy.optimize import linear_sum_assignment, linprog
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

import ganlab
from ganlab.errors import ConfigError, IncompatibleError
from ganlab.functional import input_gradient
from ganlab.plugins import optional
from ganlab.training.graph import noise
from ganlab.training.graph.replica import Draws, ReplicaView

N = 6
RANDOM = np.random.default_rng(0)
REAL, FAKE = (RANDOM.normal(size=N).astype(np.float32) for _ in range(2))
LABELS = np.array([0, 2, 1, 2, 0, 1])
REAL_POINTS, FAKE_POINTS = RANDOM.normal(size=(2, N, 3)).astype(np.float32) + np.array([[[0.0]], [[0.7]]], np.float32)
WIDTHS = {"embedding": 4, "proxy": 4, "logits": 3}
OUTPUTS = [{name: RANDOM.normal(size=(N, d)).astype(np.float32) for name, d in WIDTHS.items()} for _ in range(2)]
REAL_EMBEDDING, FAKE_EMBEDDING = (outputs["embedding"].astype(np.float64) for outputs in OUTPUTS)
REAL_LOGITS, FAKE_LOGITS = (outputs["logits"].astype(np.float64) for outputs in OUTPUTS)


def batch(points=(REAL_POINTS, FAKE_POINTS), outputs=OUTPUTS):
    real, fake = (tf.constant(x) for x in points)
    outputs = [{name: tf.constant(x) for name, x in group.items()} for group in outputs]
    return ganlab.Batch(
        real=real,
        fake=fake,
        labels=tf.constant(LABELS, tf.int64),
        size=real.shape[0],
        step=tf.constant(0, tf.int64),
        real_outputs=outputs[0],
        fake_outputs=outputs[1],
    )


def critic(made, given=None, replica=None, real=REAL, fake=FAKE):
    scores = tf.constant(real), tf.constant(fake)
    others = {"batch": given or batch(), "replica": replica or Alone(), "state": {}}
    return optional.call(made.critic, *scores, **others).numpy()


def generator(made, given=None, replica=None, real=REAL, fake=FAKE):
    scores = [tf.constant(fake), *([tf.constant(real)] if made.pairs else [])]
    others = {"batch": given or batch(), "replica": replica or Alone(), "state": {}}
    return optional.call(made.generator, *scores, **others).numpy()


def without_own(values):
    return [np.delete(row, i).mean() for i, row in enumerate(values)]


def norm(x):
    return np.sqrt((x**2).sum(1))


def softplus(x):
    return np.log1p(np.exp(np.asarray(x, np.float64)))


def test_cramer_is_the_energy_distance():
    made = loss("cramer")
    real, fake = REAL_EMBEDDING, FAKE_EMBEDDING
    between, of_real, of_fake = cdist(real, fake), cdist(real, real), cdist(fake, fake)
    energy = 2 * between.mean() - np.mean(without_own(of_real)) - np.mean(without_own(of_fake))
    assert generator(made).mean() == pytest.approx(energy, rel=1e-5)
    surrogate_real = between.mean(1) - norm(real)
    surrogate_fake = without_own(of_fake) - norm(fake)
    np.testing.assert_allclose(critic(made), surrogate_fake - surrogate_real, rtol=1e-5, atol=1e-6)
    found = made.witness(batch(), Alone())({"embedding": tf.constant(OUTPUTS[0]["embedding"])})
    np.testing.assert_allclose(found, surrogate_real, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "rational_quadratic"])
def test_mmd_is_the_unbiased_estimate(kernel):
    made = loss("mmd", kernel=kernel, scales=[0.5, 2.0])

    def k(x, y):
        if kernel == "rbf":
            return sum(rbf_kernel(x, y, gamma=1 / (2 * s**2)) for s in (0.5, 2.0))
        squared = cdist(x, y) ** 2
        return sum((1 + squared / (2 * a)) ** -a for a in (0.5, 2.0))

    real, fake = REAL_EMBEDDING, FAKE_EMBEDDING
    squared = np.mean(without_own(k(real, real))) + np.mean(without_own(k(fake, fake))) - 2 * k(real, fake).mean()
    assert generator(made).mean() == pytest.approx(squared, rel=1e-5)
    assert critic(made).mean() == pytest.approx(-squared, rel=1e-5)
    found = made.witness(batch(), Alone())({"embedding": tf.constant(OUTPUTS[1]["embedding"])})
    np.testing.assert_allclose(found, k(fake, real).mean(1) - k(fake, fake).mean(1), rtol=1e-5, atol=1e-6)


def test_mmd_scales_of_the_papers():
    assert loss("mmd").scales == (0.2, 0.5, 1.0, 2.0, 5.0)
    assert loss("mmd", kernel="rbf").scales == (1.0, 2.0, 4.0, 8.0, 16.0)
    with pytest.raises(ConfigError, match=r"losses.mmd.scales = \[1.0, 0.0\] must be one or more positive numbers"):
        loss("mmd", scales=[1.0, 0.0])


@pytest.mark.parametrize("name", ["c_transform", "cramer", "d2d_ce", "feature_matching", "max_sliced", "mmd", "top_k"])
def test_microbatches_are_refused_by_name(name):
    draws = Draws(0, N, tf.constant(0, tf.int64), tf.constant(0), whole=False)
    part = ReplicaView(name, noise.CRITIC_LOSS, draws, None, kind="losses")
    with pytest.raises(IncompatibleError, match=rf"The loss {name} takes .* Set experiment.microbatches = 1"):
        generator(loss(name), replica=part)


def test_a_batch_of_one_has_no_others():
    alone = batch((REAL_POINTS[:1], FAKE_POINTS[:1]), [{"embedding": group["embedding"][:1]} for group in OUTPUTS])
    with pytest.raises(IncompatibleError, match=r"has only one. Set experiment.batch_size"):
        critic(loss("cramer"), alone, real=REAL[:1], fake=FAKE[:1])


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_c_transform_reaches_the_transport_cost_with_the_best_potential(power):
    made = loss("c_transform", power=power)
    cost = cdist(REAL_POINTS.astype(np.float64), FAKE_POINTS.astype(np.float64)) ** power
    exact = cost[linear_sum_assignment(cost)].mean()
    # Transport as a linear program: marginals of real examples first, of samples after; its duals are the potentials.
    rows, columns = np.kron(np.eye(N), np.ones(N)), np.kron(np.ones(N), np.eye(N))
    solved = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.full(2 * N, 1 / N))
    best = solved.eqlin.marginals[:N].astype(np.float32)
    assert -critic(made, real=best).mean() == pytest.approx(exact, rel=1e-5)
    for _ in range(20):  # and no potential exceeds it
        assert -critic(made, real=best + RANDOM.normal(size=N).astype(np.float32)).mean() <= exact * (1 + 1e-5)
    transformed = [min(cost[i, j] - REAL[i] for i in range(N)) for j in range(N)]
    np.testing.assert_allclose(generator(made), transformed, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(critic(made), -REAL - np.array(transformed), rtol=1e-5, atol=1e-5)


def test_soft_c_transform_is_the_entropic_one():
    cost = cdist(REAL_POINTS.astype(np.float64), FAKE_POINTS.astype(np.float64))
    transformed = -0.3 * np.log(np.exp((REAL[:, None] - cost) / 0.3).mean(0))
    np.testing.assert_allclose(generator(loss("c_transform", epsilon=0.3)), transformed, rtol=1e-4, atol=1e-5)


def test_c_transform_moves_samples_towards_real_examples():
    made, points = loss("c_transform"), tf.constant(FAKE_POINTS)
    cost = cdist(REAL_POINTS, FAKE_POINTS)
    nearest = (cost - REAL[:, None]).argmin(0)

    def value(x):
        return made.generator(tf.constant(FAKE), tf.constant(REAL), batch((REAL_POINTS, x)), Alone())

    slope, _ = input_gradient(value, points)
    towards = FAKE_POINTS - REAL_POINTS[nearest]
    np.testing.assert_allclose(slope, towards / norm(towards)[:, None], rtol=1e-4, atol=1e-5)


def test_d2d_ce_is_the_papers_equation():
    arguments = {"weight": 0.7, "temperature": 0.25, "positive_margin": 0.9, "negative_margin": 0.1}
    made = loss("d2d_ce", **arguments)

    def entropy(outputs):
        both = (outputs[name].astype(np.float64) for name in ("embedding", "proxy"))
        f, v = (x / norm(x)[:, None] for x in both)
        found = []
        for i in range(N):
            pull = math.exp(min(0.0, f[i] @ v[i] - 0.9) / 0.25)
            push = sum(math.exp(max(0.0, f[i] @ f[j] - 0.1) / 0.25) for j in range(N) if LABELS[j] != LABELS[i])
            found.append(-math.log(pull / (pull + push)))
        return np.array(found)

    hinge = np.maximum(0, 1 - REAL) + np.maximum(0, 1 + FAKE)
    np.testing.assert_allclose(critic(made), hinge + 0.7 * entropy(OUTPUTS[0]), rtol=1e-5)
    np.testing.assert_allclose(generator(made), -FAKE + 0.7 * entropy(OUTPUTS[1]), rtol=1e-5)


def test_feature_matching_compares_means():
    made = loss("feature_matching")
    apart = ((REAL_EMBEDDING.mean(0) - FAKE_EMBEDDING.mean(0)) ** 2).sum()
    np.testing.assert_allclose(generator(made), np.full(N, apart), rtol=1e-5)
    np.testing.assert_allclose(critic(made), softplus(-REAL) + softplus(FAKE), rtol=1e-5)
    assert made.outputs == ("embedding",)
    assert loss("feature_matching", output="logits", game=loss("auxiliary_classifier")).outputs == ("logits",)


def test_max_sliced_is_the_cost_of_the_best_assignment_of_scores():
    made, costs = loss("max_sliced", game=loss("hinge")), cdist(REAL[:, None], FAKE[:, None], "sqeuclidean")
    real, fake = linear_sum_assignment(costs)
    np.testing.assert_allclose(generator(made), np.full(N, costs[real, fake].mean()), rtol=1e-5)
    slope, _ = input_gradient(
        lambda scores: made.generator(scores, tf.constant(REAL), replica=Alone()), tf.constant(FAKE)
    )
    partner = np.empty(N)
    partner[fake] = REAL[real]
    # Each of the N values is the mean.
    np.testing.assert_allclose(slope, 2 * (FAKE - partner), rtol=1e-4)
    np.testing.assert_allclose(critic(made), np.maximum(0, 1 - REAL) + np.maximum(0, 1 + FAKE), rtol=1e-5)


@pytest.mark.parametrize(("fraction", "k"), [(1.0, 6), (0.5, 3), (0.67, 4), (0.01, 1)])
def test_top_k_averages_over_the_best(fraction, k):
    made, replica = loss("top_k", fraction=fraction, game=loss("wasserstein")), Alone()
    found = generator(made, replica=replica)
    best = np.sort(FAKE)[-k:]
    assert found.mean() == pytest.approx(-best.mean(), rel=1e-5)
    assert set(np.flatnonzero(found)) == set(np.argsort(FAKE)[-k:])
    assert replica.logged["kept"][0].mean() == pytest.approx(k / N)
    np.testing.assert_allclose(critic(made), FAKE - REAL, rtol=1e-6)


def test_top_k_keeps_k_of_equal_scores():
    found = generator(loss("top_k"), fake=np.zeros(N, np.float32))
    np.testing.assert_allclose(found, [2 * math.log(2)] * 3 + [0] * 3, rtol=1e-5)


def test_top_k_takes_games_of_pairs_and_of_classes():
    relative = generator(loss("top_k", fraction=1.0, game=loss("relativistic")))
    np.testing.assert_allclose(relative, softplus(REAL - FAKE), rtol=1e-5)
    average = loss("top_k", fraction=1.0, game=loss("relativistic_average"))
    np.testing.assert_allclose(generator(average), generator(loss("relativistic_average")), rtol=1e-6)
    classes = loss("top_k", game=loss("auxiliary_classifier"))
    assert classes.labels
    assert classes.outputs == ("logits",)


def test_relativistic_losses_are_cross_entropies_of_pairs_and_with_means():
    made, average = loss("relativistic"), loss("relativistic_average")
    assert made.pairs
    for side, one, other in ((critic, REAL, FAKE), (generator, FAKE, REAL)):
        one, other = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_allclose(side(made), softplus(other - one), rtol=1e-6)
        expected = softplus(other.mean() - one) + softplus(other - one.mean())
        np.testing.assert_allclose(side(average), expected, rtol=1e-6)


def test_normalized_gradient_is_that_of_the_authors_code():
    made, curve, square = loss("normalized_gradient", scale=2.0, decay=0.75), np.array([0.3, -1.0, 2.0]), 0.0
    networks = {"critic": SimpleNamespace(outputs=lambda x: {"score": tf.reduce_sum(x * x * curve, axis=1)})}
    state, own = made.initial_state(), {"replica": Alone(), "networks": networks}
    for real, fake in ((FAKE_POINTS, REAL_POINTS), (REAL_POINTS, FAKE_POINTS)):
        gap = (real.astype(np.float64) ** 2 - fake**2) @ curve
        slopes = -2 * curve * fake / (1 + np.exp(-gap))[:, None]
        # ByteDance-Seed/Adversarial-Flow-Models 519601d, grad_norm.py:48, 56 and 57, of the mean's gradient.
        square += (1 - 0.75) * (((slopes / N) ** 2).sum() * slopes.size - square)
        state = made.advance(state, None, None, batch((real, fake)), **own)
        assert float(state["squared_gradient"]) == pytest.approx(square, rel=1e-5)

    def value(x):
        scores = (networks["critic"].outputs(each)["score"] for each in (x, tf.constant(real)))
        return made.generator(*scores, batch=batch(), state=state, **own)

    found, values = input_gradient(value, tf.constant(fake))
    np.testing.assert_allclose(values, softplus(gap), rtol=1e-5)
    np.testing.assert_allclose(found, slopes * 2 / (np.sqrt(square) + 1e-8), rtol=1e-4, atol=1e-6)


def cross_entropy(logits):
    return np.log(np.exp(logits).sum(1)) - logits[np.arange(N), LABELS]


@pytest.mark.parametrize("on_samples", [True, False])
def test_auxiliary_classifier_adds_cross_entropies(on_samples):
    made, replica = loss("auxiliary_classifier", weight=0.5, on_samples=on_samples), Alone()
    expected = softplus(-REAL) + softplus(FAKE) + 0.5 * cross_entropy(REAL_LOGITS)
    expected += 0.5 * cross_entropy(FAKE_LOGITS) * on_samples
    np.testing.assert_allclose(critic(made, replica=replica), expected, rtol=1e-6)
    np.testing.assert_allclose(generator(made), softplus(-FAKE) + 0.5 * cross_entropy(FAKE_LOGITS), rtol=1e-6)
    assert replica.logged["accuracy"][0].mean() == pytest.approx((REAL_LOGITS.argmax(1) == LABELS).mean())


def test_auxiliary_classifier_takes_another_game_but_no_pairs():
    made = loss("auxiliary_classifier", game=loss("wasserstein"), weight=0.0)
    np.testing.assert_allclose(critic(made), FAKE - REAL, rtol=1e-6)
    with pytest.raises(ConfigError, match="compares pairs of examples"):
        loss("auxiliary_classifier", game=loss("relativistic"))


def margin(logits, scores, labels):
    whole = np.concatenate([logits, -scores[:, None]], axis=1)
    return [
        max(0, 1 - row[y] + max(v for k, v in enumerate(row) if k != y)) for row, y in zip(whole, labels, strict=True)
    ]


def test_multi_hinge_asks_for_a_margin_of_one():
    made = loss("multi_hinge")
    expected = np.add(margin(REAL_LOGITS, REAL, LABELS), margin(FAKE_LOGITS, FAKE, np.full(N, 3)))
    np.testing.assert_allclose(critic(made), expected, rtol=1e-5)
    expected = margin(FAKE_LOGITS, FAKE, LABELS)
    np.testing.assert_allclose(generator(made), expected, rtol=1e-5)
