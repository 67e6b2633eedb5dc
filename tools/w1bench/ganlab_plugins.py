"""Spectral normalization as in the code behind published.csv: no gradient passes through the norm.

https://github.com/justkolesov/Wasserstein1Benchmark, src/models.py, class Spectralnorm: the norm is that of `.data`.
Miyato et al. (2018), equation 12, differentiate it, as `constraints.spectral_norm` does.
"""

import tensorflow as tf

import ganlab


class HeldSpectralNorm(ganlab.Constraint):
    """`constraints.spectral_norm` with the norm held fixed in the gradient."""

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


@ganlab.hookimpl
def ganlab_constraints():
    """The constraint of this file."""
    return {"held_spectral_norm": HeldSpectralNorm}
