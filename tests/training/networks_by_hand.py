"""Networks of two layers in numpy, with their gradients by hand, and random bits by Python's integers."""

import numpy as np

from ganlab.training.graph import noise


def outputs(weights, x):
    """Samples of a generator of two layers, or scores of a critic."""
    kernel, bias, last, shift = weights
    return np.tanh(x @ kernel + bias) @ last + shift


def gradients(weights, x, upstream):
    """The gradients by the weights of a network of two layers, and by its input."""
    kernel, bias, last, _ = weights
    hidden = np.tanh(x @ kernel + bias)
    inner = upstream @ last.T * (1 - hidden**2)
    return [x.T @ inner, inner.sum(0), hidden.T @ upstream, upstream.sum(0)], inner @ kernel.T


class Net:
    """A network of two layers in float64, with its gradient by hand."""

    def __init__(self, named, role):
        own = {name: value for name, value in named.items() if name.startswith(f"{role}/weights/")}
        self.names, self.weights = list(own), [np.asarray(value, np.float64) for value in own.values()]

    def __call__(self, x):
        self.x = x
        return outputs(self.weights, x)

    def back(self, upstream):
        """The gradients of the weights and of the input for the last call."""
        return gradients(self.weights, self.x, upstream)

    def descend(self, rate, *gradients):
        self.weights = [w - rate * sum(g) for w, *g in zip(self.weights, *gradients, strict=True)]


def differences(function, weights, h=1e-5):
    """The gradient of a number by weights, which are arrays that the function reads, by central differences."""
    gradient = [np.zeros_like(w) for w in weights]
    for w, g in zip(weights, gradient, strict=True):
        for place in np.ndindex(w.shape):
            kept = w[place]
            w[place] = kept + h
            up = function()
            w[place] = kept - h
            g[place] = (up - function()) / (2 * h)
            w[place] = kept
    return gradient


def assert_moved(training, expected, least=1e-3):
    """Asserts that weights are those of a loop by hand, in which each moved by more than this."""
    for name, value in expected.items():
        np.testing.assert_allclose(training.values[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
        assert np.abs(value - training.start[name]).max() > least, name


def latents(update, stream, rows=12, width=3):
    """The latent vectors of an update of experiments with the seed 0, as they are drawn there."""
    return noise.whole("normal", (rows, width), seed=0, stream=stream, step=update).numpy().astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def splitmix64(count, *, seed, stream):
    """The 64 random bits of the number that is this many steps on in a stream."""
    golden, whole = 0x9E3779B97F4A7C15, 2**64

    def mixed(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % whole
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % whole
        return x ^ (x >> 31)

    return mixed(mixed((count * golden + mixed(((seed << 20) + stream + golden) % whole)) % whole))
