"""Examples moved towards centres: the distance, the optimal critic and the pairs, against numpy in float64."""

import numpy as np
import pytest
import tensorflow as tf
from given import pair
from making import dataset as made

import ganlab
from ganlab.transport import exact_w1


def make(other, **arguments):
    return made("moved_examples", dataset=other, **arguments)


def digits():
    return made("digits")


def test_images_move_towards_the_nearest_centre():
    dataset = make(digits(), funnels=5, share=0.25)
    moved, points = pair(dataset, 300)
    flat = points.reshape(300, -1)
    centres = np.asarray(digits().examples(tf.constant([0, 359, 718, 1078, 1437], tf.int64), 0)).reshape(5, -1)
    nearest = centres[np.linalg.norm(flat[:, None] - centres, axis=2).argmin(axis=1)]
    np.testing.assert_allclose(moved.reshape(300, -1), flat + 0.25 * (nearest - flat), atol=1e-5)
    assert np.abs(moved).max() <= 1.0
    np.testing.assert_array_equal(points, digits().examples(tf.range(300, dtype=tf.int64), 0))


def test_the_potential_is_the_optimal_critic_of_images():
    dataset = make(digits(), funnels=7)
    moved, points = pair(dataset, 400)
    dual = float(np.mean(dataset.potential(moved)) - np.mean(dataset.potential(points)))
    # Of these 400 against these 400, too: the pairs are an optimal plan.
    assert dual == pytest.approx(exact_w1(moved, points), rel=1e-5)
    flat = np.linalg.norm((moved - points).reshape(400, -1), axis=1)
    assert dual == pytest.approx(flat.mean(), rel=1e-5)
    gradient = np.asarray(dataset.potential_gradient(tf.constant(points, tf.float32)))
    assert gradient.shape == points.shape
    before, after = (np.asarray(dataset.potential(x)) for x in (points, points + 1e-2 * gradient))
    risen = after - before
    np.testing.assert_allclose(risen[flat > 0.1], 1e-2, rtol=0.02)


def test_the_distance_is_that_of_all_examples():
    dataset = make(digits(), funnels=7)
    moved, points = pair(dataset, 1797)
    expected = np.linalg.norm((moved - points).reshape(1797, -1), axis=1).mean()
    assert dataset.wasserstein == pytest.approx(expected, rel=1e-5)


def test_an_endless_dataset_has_centres_that_training_does_not_reach(through_pipeline):
    dataset = make(made("gaussian_ring"), funnels=3, share=1.0)
    moved, _ = pair(dataset, 200)
    assert len(np.unique(moved.round(5), axis=0)) == 3
    assert dataset.size is None
    np.testing.assert_allclose(through_pipeline(dataset, np.arange(8), 4), moved[:8], atol=1e-6)
    moves = np.linalg.norm(np.subtract(*pair(dataset, 20_000)), axis=1)
    assert dataset.wasserstein == pytest.approx(moves.mean(), rel=0.02)


def test_labels_and_the_fingerprint_are_the_other_datasets_and_its_own():
    dataset = make(digits(), funnels=4)
    numbers = tf.range(50, dtype=tf.int64)
    np.testing.assert_array_equal(dataset.labels(numbers), digits().labels(numbers))
    assert dataset.classes == 10
    other = make(digits(), funnels=4, share=0.6)
    assert dataset.fingerprint() != other.fingerprint()
    assert digits().fingerprint().items() <= dataset.fingerprint().items()


def test_conditions_sources_and_how_it_is_shown_are_the_other_datasets():
    showers, edges = made("showers"), made("edges")
    numbers = tf.range(5, dtype=tf.int64)
    np.testing.assert_array_equal(make(showers, funnels=3).conditions(numbers, 2), showers.conditions(numbers, 2))
    assert make(showers, funnels=3).condition_of(np.ones([2, 6])).tolist() == [[6.0], [6.0]]
    moved = make(edges, funnels=3)
    np.testing.assert_array_equal(moved.sources(numbers, 0), edges.sources(numbers, 0))
    assert (moved.source_shape, moved.condition_shape) == ((32, 32, 1), None)
    texts = made("characters")
    assert make(texts, funnels=3).show(texts.examples(numbers, 0)) == texts.sentences[:5]


def test_more_centres_than_examples_are_refused():
    with pytest.raises(ganlab.ConfigError, match="funnels = 2000 must be at most the number of examples, 1797"):
        make(digits(), funnels=2000)
