"""What the code behind published.csv does in its own way (https://github.com/justkolesov/Wasserstein1Benchmark)."""

import keras
import tensorflow as tf

import ganlab
from ganlab import layers


class HeldSpectralNorm(ganlab.Constraint):
    """`constraints.spectral_norm` with the norm held fixed in the gradient.

    src/models.py, class Spectralnorm, takes the norm of `.data`. Miyato et al. (2018), equation 12, differentiate it,
    as `constraints.spectral_norm` does.
    """

    def __init__(self, *, power_iterations: int = 5) -> None:
        """Args: power_iterations: Power iterations for each update."""
        self._norm = ganlab.component("constraints", "spectral_norm")(power_iterations=power_iterations)

    def prepare(self, critic):
        """As spectral_norm."""
        self._norm.prepare(critic)

    def initial_state(self, weights):
        """As spectral_norm."""
        return self._norm.initial_state(weights)

    def advance(self, weights, state, *given, **optional):
        """As spectral_norm."""
        return self._norm.advance(weights, state, *given, **optional)

    def reparameterize(self, weights, state):
        """Every kernel over its norm, as a constant."""
        normalized = self._norm.reparameterize(weights, state)
        return {
            name: w if normalized[name] is w else w * tf.stop_gradient(tf.norm(normalized[name]) / tf.norm(w))
            for name, w in weights.items()
        }


class LinearCritic(ganlab.Architecture):
    """The critic and the mover of src/models.py: dense layers that start as PyTorch's `Linear`, biases too.

    Kernels and biases are uniform up to `1 / sqrt(inputs)`. In few dimensions biases matter: without them the kinks of
    all rectifiers of the first layer pass through zero.
    """

    latent_dim = 0

    def __init__(self, *, width: int = 128, activation: str = "relu") -> None:
        """Args: width: Units of both hidden layers; activation: "relu", "max_min" or "full_sort"."""
        self.width, self.activation = width, activation

    def critic(self, sample_shape):
        """`(n, d) -> (n, 1)`."""
        return self._model(sample_shape, 1, "critic")

    def generator(self, sample_shape, source_shape):
        """The mover, `(n, d) -> (n, d)`."""
        return self._model(source_shape, *sample_shape, "source")

    def _model(self, shape, outputs, name):
        x = inputs = keras.Input(shape, name=name)
        for i in range(2):
            x = _ACTIVATIONS[self.activation](name=f"activation_{i}")(_linear(x, self.width, f"dense_{i}"))
        return keras.Model(inputs, _linear(x, outputs, "output"), name=name)


_ACTIVATIONS = {"relu": keras.layers.ReLU, "max_min": layers.GroupSort, "full_sort": layers.FullSort}


def _linear(x, units, name):
    limit = x.shape[-1] ** -0.5
    kernel, bias = (keras.initializers.RandomUniform(-limit, limit) for _ in range(2))
    return keras.layers.Dense(units, kernel_initializer=kernel, bias_initializer=bias, name=name)(x)


@ganlab.hookimpl
def ganlab_constraints():
    """The constraint of this file."""
    return {"held_spectral_norm": HeldSpectralNorm}


@ganlab.hookimpl
def ganlab_architectures():
    """The critic of this file."""
    return {"linear_critic": LinearCritic}
