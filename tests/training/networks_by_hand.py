"""Networks of two layers in numpy, with their gradients by hand."""

import numpy as np

from ganlab.training.graph import noise


class Net:
    """A network of two layers in float64, with its gradient by hand."""

    def __init__(self, named, role):
        own = {name: value for name, value in named.items() if name.startswith(f"{role}/weights/")}
        self.names, self.weights = list(own), [np.asarray(value, np.float64) for value in own.values()]

    def __call__(self, x):
        kernel, bias, last, shift = self.weights
        self.x, self.hidden = x, np.tanh(x @ kernel + bias)
        return self.hidden @ last + shift

    def back(self, upstream):
        """The gradients of the weights and of the input for the last call."""
        kernel, _, last, _ = self.weights
        inner = upstream @ last.T * (1 - self.hidden**2)
        own = [self.x.T @ inner, inner.sum(0), self.hidden.T @ upstream, upstream.sum(0)]
        return own, inner @ kernel.T

    def descend(self, rate, *gradients):
        self.weights = [w - rate * sum(g) for w, *g in zip(self.weights, *gradients, strict=True)]


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
