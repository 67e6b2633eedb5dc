"""Datasets and samplers for tests of evaluators."""

import numpy as np
import scipy.linalg
from making import dataset

import ganlab


def gaussian(d=2):
    """Examples without end."""
    return dataset("translated_gaussians", dims=d, distance=0.0)


class Halves(ganlab.Features):
    """Examples over two, and two classes by the sign of the first value; counts the calls of `prepare`."""

    def __init__(self):
        self.prepared = []

    def prepare(self, dataset):
        self.prepared.append(dataset)

    def embed(self, x):
        return x.reshape(len(x), -1) / 2

    def probabilities(self, x):
        first = (x.reshape(len(x), -1)[:, :1] > 0).astype(float)
        return np.hstack([first, 1 - first])


def normal(mean=0.0, std=1.0, d=2):
    """A generator of a Gaussian."""
    return lambda n, seed: (mean + std * np.random.default_rng([7, seed]).normal(size=(n, d))).astype(np.float32)


def measure(name, sample, real, **arguments):
    return ganlab.component("evaluators", name)(**arguments).evaluate(sample, real, None)


def scipys_frechet(mean, cov, mean_r, cov_r):
    """The squared distance of two Gaussians, by scipy's root of a matrix."""
    root = scipy.linalg.sqrtm(cov @ cov_r)
    return float(np.sum((mean - mean_r) ** 2) + np.trace(cov + cov_r - 2 * root.real))


def frechet(x, y):
    """The same of two samples, in float64."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return scipys_frechet(x.mean(0), np.cov(x.T), y.mean(0), np.cov(y.T))
