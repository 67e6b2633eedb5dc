"""A run of two steps to certify, and weights and inputs of critics."""

import numpy as np

from ganlab.functional import named_weights

RUN = """
include 'base/toy.gin'
experiment.dataset = @datasets.gaussian_ring()
experiment.steps = 2
experiment.critic_steps = 1
experiment.batch_size = 16
architectures.mlp.width = 6
architectures.mlp.depth = 2
"""


def weights_of(model):
    return {name: np.asarray(variable) for name, variable in named_weights(model).items()}


def points(model, count=2000, spread=1.0, seed=0):
    drawn = np.random.default_rng(seed).standard_normal((count, *model.inputs[0].shape[1:]))
    return (spread * drawn).astype(np.float32)
