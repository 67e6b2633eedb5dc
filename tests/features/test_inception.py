"""Inception-v3 from a file of random weights, small images and few classes."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from labelled import Images

import ganlab


def inception(path, **arguments):
    return ganlab.component("features", "inception")(path=str(path), **arguments)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A network of seven classes with random weights, and the file it was saved in."""
    keras.utils.set_random_seed(0)
    network = keras.applications.InceptionV3(weights=None, input_shape=(75, 75, 3), classes=7)
    path = tmp_path_factory.mktemp("inception") / "random.weights.h5"
    network.save_weights(path)
    return network, path


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3])
def test_features_are_those_of_the_saved_network(saved, channels):
    network, path = saved
    dataset = Images(size=8, shape=(20, 20, channels))
    features = inception(path, size=75, classes=7)
    features.prepare(dataset)
    x = dataset.examples(np.arange(8), 0).numpy()
    colour = np.repeat(x, 3, axis=-1) if channels == 1 else x
    resized = tf.image.resize(colour, (75, 75), antialias=True)
    np.testing.assert_allclose(features.probabilities(x), network(resized), rtol=1e-4, atol=1e-6)
    embedded = features.embed(x)
    assert embedded.shape == (8, 2048)
    assert "features.inception has untrained weights" in features.diagnose()
    # The last layer takes these features to those probabilities.
    kernel, bias = network.get_layer("predictions").get_weights()
    logits = embedded @ kernel + bias
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(features.probabilities(x), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_file_of_another_network_is_refused(saved):
    features = inception(saved[1], size=75, classes=8)
    with pytest.raises(ganlab.ConfigError, match="does not fit InceptionV3 with classes = 8 and top = True"):
        features.prepare(Images(shape=(20, 20, 3)))


def test_a_missing_file_is_reported_with_the_remedy(tmp_path):
    with pytest.raises(ganlab.ConfigError, match=r"features\.inception needs path"):
        ganlab.component("features", "inception")()
    with pytest.raises(ganlab.ConfigError, match=r"is not there.*InceptionV3\(weights='imagenet'\)\.save_weights"):
        inception(tmp_path / "none.weights.h5")
    with pytest.raises(ganlab.ConfigError, match=r"must be a file of weights, one of \.weights\.h5, \.keras, \.h5"):
        inception(tmp_path)


def test_values_and_data_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "empty.weights.h5"
    path.write_bytes(b"")
    for shape in ((5,), (20, 20, 2)):
        with pytest.raises(ganlab.IncompatibleError, match="images of 1 or 3 channels"):
            inception(path).prepare(Images(shape=shape))
    with pytest.raises(ganlab.ContractError, match="first"):
        inception(path).embed(np.zeros((2, 20, 20, 3)))
