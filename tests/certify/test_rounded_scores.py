"""Scores of rounded products are within the error that a certificate states."""

import itertools

import keras
import numpy as np
import pytest
from ganlab_certify.chains import Chain, Stage
from ganlab_certify.rounded import Rounding, rounding_of, score_error

from ganlab import layers
from ganlab.functional import named_weights

BITS = {"tensorfloat32": 11, "mixed_bfloat16": 8}


def rounded(x, bits):
    """Numbers with so many significant bits, ties to even."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)


def scores(chain, x, bits=None, results=False):
    factor = (lambda x: rounded(x, bits)) if bits else (lambda x: x)
    result = factor if results else lambda x: x
    for stage in chain.stages:
        x = result(result(factor(x) @ factor(stage.matrix).T) + result(stage.bias))
        x = np.maximum(x, 0.0)
    return result(result(factor(x) @ factor(chain.last)) + result(chain.bias))


def chain_of(matrices, biases):
    sides = [(np.zeros(len(b)), np.ones(len(b)), 1, np.zeros(len(b))) for b in biases]
    stages = tuple(Stage(w, b, *side) for w, b, side in zip(matrices, biases, sides, strict=False))
    return Chain(stages, matrices[-1][0], 0.5)


@pytest.mark.parametrize("precision", BITS)
def test_emulated_errors_are_bounded_and_the_worst_ones_come_near(precision):
    bits, random = BITS[precision], np.random.default_rng(0)
    sizes = [12, 32, 32, 1]
    drawn = [random.normal(size=(b, a)) / np.sqrt(a) for a, b in itertools.pairwise(sizes)]
    # Just below the middle between two numbers: each factor loses the whole unit, and nothing cancels.
    low = 1.0 + 0.999 * 2.0**-bits
    worst = [np.full((16, 16), low / 16), np.full((1, 16), low / 16)]
    cases = [
        (chain_of(drawn, [random.normal(size=32) for _ in range(2)]), random.normal(size=(500, 12)), 0.0),
        (chain_of(worst, [np.zeros(16)]), np.full((1, 16), low), {11: 0.5, 8: 0.2}[bits]),
    ]
    for chain, x, share in cases:
        radius = np.linalg.norm(x, axis=1).max()
        error = score_error(chain, precision, radius)
        computed = scores(chain, x, bits, precision == "mixed_bfloat16")
        apart = np.abs(computed - scores(chain, x)).max()
        assert share * error < apart <= error
        bound = np.prod([np.linalg.norm(m, 2) for m in [*(s.matrix for s in chain.stages), chain.last[None]]])
        ways = np.linalg.norm(x[1:] - x[:-1], axis=1)
        growth = [Rounding(precision, radius, error).factor(bound, way) for way in ways]
        assert (np.abs(np.diff(computed)) <= bound * np.array(growth) * ways).all()


def test_a_critic_in_bfloat16_keeps_the_error_and_others_say_why_not(precision):
    def critic(activation):
        inputs = keras.Input((4, 4, 2))
        x = keras.layers.LeakyReLU(0.2)(keras.layers.Conv2D(4, 3, padding="same")(inputs))
        x = activation(keras.layers.Dense(16)(keras.layers.Flatten()(x)))
        return keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(x))

    exact = critic(layers.GroupSort())
    x = np.random.default_rng(0).normal(size=(64, 4, 4, 2)).astype(np.float32)
    values = {name: variable.value for name, variable in named_weights(exact).items()}
    radius = float(np.linalg.norm(x.reshape(64, -1), axis=1).max())
    found = rounding_of(exact, values, "mixed_bfloat16", radius)
    scored = exact(x).numpy()
    smooth = critic(keras.layers.Activation("tanh"))
    values = {name: variable.value for name, variable in named_weights(smooth).items()}
    assert "not piecewise linear" in rounding_of(smooth, values, "mixed_bfloat16", radius).note
    precision("mixed_bfloat16")
    rough = critic(layers.GroupSort())
    rough.set_weights(exact.get_weights())
    assert 1e-4 < np.abs(rough(x).numpy() - scored).max() <= found.error
