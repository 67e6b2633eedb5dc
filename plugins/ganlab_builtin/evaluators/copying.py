"""Whether samples are as good as examples that training does not see, or copies of those that it does."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab_builtin.evaluators import comparing
from ganlab_builtin.evaluators.comparing import SHARE, OverFeatures, Possible, Sample
from ganlab_builtin.evaluators.neighbours import squared_distances

if TYPE_CHECKING:
    from ganlab import Run

_FEW = 20  # a cell with no more samples says nothing, as in the authors' and later evaluations
_CELLS, _WIDEST = 3, 64
_RATE, _EPOCHS, _STILL = 0.5, 50, 5e-4
_ROWS = 500
_ORIGIN = 0.9**2  # brings the mean of the training examples a tenth nearer, in squared distance


class _BesideHeldOut(OverFeatures):
    """Base class: three samples, of training examples, of examples that are held out, and of the generator."""

    name: ClassVar[str]

    def __init__(
        self,
        *,
        samples: Annotated[int, Ge(4), Le(10**7)] = 5000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
        features: ganlab.Features | None = None,
        held_out: ganlab.Dataset | None = None,
    ) -> None:
        """Sets the size of the samples.

        Args:
            samples: The most examples of each kind: generated, of training, and held out.
            seed: Decides the noise that samples are drawn from, and the real examples.
            features: The space to measure in; None for pixels.
            held_out: Examples that training does not see, such as test images; a dataset that never ends has its own.
        """
        self.samples, self.seed, self.features, self.held_out = samples, seed, features, held_out

    def _drawn(self, sample: Sample, dataset: ganlab.Dataset) -> list[np.ndarray]:
        """Feature vectors, float64 `(n, d)`: of training, generated ones, and, if there are any, held-out ones.

        Raises:
            IncompatibleError: Samples or examples that are held out are of another shape.
        """
        if self.features is not None:
            self.features.prepare(dataset)
        other = dataset if self.held_out is None and dataset.size is None else self.held_out
        made = comparing.generated_examples(self.name, sample, dataset, self.samples, self.seed)
        rows = [made]
        for source, start in ((dataset, 0), (other, self.samples)):
            if source is None:
                continue
            if tuple(source.sample_shape) != made.shape[1:]:
                raise ganlab.IncompatibleError(
                    f"evaluators.{self.name}.held_out has examples of shape {tuple(source.sample_shape)}, and samples "
                    f"are of shape {made.shape[1:]}. Hold out examples of the same kind."
                )
            numbers = np.arange(start, start + self.samples)
            if source.size is not None:
                numbers = np.random.default_rng(self.seed).permutation(source.size)[: self.samples]
            rows.append(comparing.real_examples(source, numbers, self.seed))
        generated, train, *rest = (comparing.embedded(self.features, x) for x in rows)
        return [train, generated, *rest]


class Copying(_BesideHeldOut):
    """Two tests of copied training examples: the share of authentic samples, and C_T against examples held out.

    - Alaa et al., "How faithful is your synthetic data?" (2022), section 3: a sample is authentic if it is farther from
      its nearest training example than that one is from its own nearest. The share times 100 is AuthPct.
    - Meehan, Chaudhuri and Dasgupta, "A non-parametric test to detect data-copying in generative models" (2020),
      section 4: in each cell of the training examples, the standardized Mann-Whitney statistic of the distances of
      samples and of held-out examples to their nearest training example; C_T is the mean over cells, by their share of
      held-out examples. Cells are three of k-means, after principal components if there are more than 64 features, and
      count with more than 20 samples. Below -3 is copying, above 3 underfitting.

    Copies of training examples beyond `samples` are not seen. Without `held_out`, and of a dataset that ends, there is
    `authentic` alone.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "authentic": "The share of samples that are no closer to a training example than its own nearest one.",
        "real_authentic": "The same share of examples that are held out: what to expect without copying.",
        "ct": (
            "The test statistic of Meehan et al.: about 0 within 1 if samples are as far from training examples as "
            "examples that are held out; below -3 they are copies, above 3 they are farther."
        ),
    }

    name: ClassVar[str] = "copying"
    possible: ClassVar[Possible] = dict.fromkeys(("authentic", "real_authentic"), SHARE)

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures; NaN for samples that are not finite, and for `ct` if no cell has enough samples."""
        train, generated, *rest = self._drawn(sample, dataset)
        figures = {"authentic": authentic(generated, train)}
        for other in rest:
            figures["real_authentic"] = authentic(other, train)
            finite = bool(np.isfinite(generated).all())
            figures["ct"] = copying_statistic(train, other, generated, self.seed) if finite else float("nan")
        return figures


class FeatureLikelihood(_BesideHeldOut):
    """The feature likelihood divergence, FLD, and its generalization gap: samples that are good, diverse and new.

    Jiralerspong et al., "Feature likelihood divergence: evaluating the generalization of generative models using
    samples" (2023), section 3: a mixture of Gaussians around generated features, whose widths are fitted to training
    examples, so that a copy becomes a narrow peak. FLD is 100 times how much less likely held-out examples are, for
    each feature, than under the mixture of one half of the training examples fitted to the other. The gap is 100 times
    how much more likely training examples are than held-out ones, negative: the lower, the more is copied. Widths are
    fitted as marcojira/fld at ffbbf20 does (fld/MoG.py:96-158), in float64 and with all examples in one batch. The
    paper has 10,000 samples; 5,000 take 200 MB and half a minute.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "FLD: how much less likely examples that are held out are under a mixture around samples than under one "
            "around training examples; smaller is better. About 0 for samples as good as training examples."
        ),
        "gap": "FLD's generalization gap: about 0 if nothing is copied, far below 0 if samples are training examples.",
    }

    name: ClassVar[str] = "fld"
    better: ClassVar = {"distance": "min"}

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures, `distance` and `gap`; NaN for samples that are not finite.

        Raises:
            IncompatibleError: There are no examples that are held out, or they or samples are of another shape.
        """
        if self.held_out is None and dataset.size is not None:
            raise ganlab.IncompatibleError(
                "evaluators.fld compares samples with examples that training does not see, and "
                f"{type(dataset).__name__} has none. Set evaluators.fld.held_out to a dataset of them, such as of the "
                "test images."
            )
        train, generated, other = self._drawn(sample, dataset)
        distance, gap = feature_likelihood(train, other, generated)
        return {"distance": distance, "gap": gap}


def authentic(samples: np.ndarray, train: np.ndarray) -> float:
    """The share of samples farther from their nearest training example than it is from its own; NaN if not finite."""
    if not np.isfinite(samples).all():
        return float("nan")
    distances, nearest = _nearest(samples, train)
    own = np.concatenate([np.partition(squared, 1, axis=1)[:, 1] for squared in squared_distances(train, train)])
    return float(np.mean(own[nearest] < distances))


def copying_statistic(
    train: np.ndarray, held_out: np.ndarray, generated: np.ndarray, seed: int, centres: np.ndarray | None = None
) -> float:
    """C_T of rows, `(n, d)`, in cells around centres, by default those of k-means; NaN if too few are generated."""
    from scipy.cluster.vq import kmeans2, vq

    samples = [train, held_out, generated]
    if train.shape[1] > _WIDEST:
        axes = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)[2][:_WIDEST]
        samples = [(x - train.mean(axis=0)) @ axes.T for x in samples]
    if centres is None:  # the best of ten starts, as in scikit-learn and the authors' program
        rng, k = np.random.default_rng(seed), min(_CELLS, len(train))
        found = [kmeans2(samples[0], k, 300, minit="++", rng=rng)[0] for _ in range(10)]
        centres = min(found, key=lambda one: float((vq(samples[0], one)[1] ** 2).sum()))
    cells = [vq(x, centres)[0] for x in samples]
    total, weight = 0.0, 0
    for cell in np.unique(cells[0]):
        near, other, made = (x[of == cell] for x, of in zip(samples, cells, strict=True))
        if len(made) > _FEW and len(other):
            total += len(other) * _standardized(_nearest(made, near)[0], _nearest(other, near)[0])
            weight += len(other)
    return total / weight if weight else float("nan")


def _standardized(x: np.ndarray, y: np.ndarray) -> float:
    """The Mann-Whitney statistic of x against y, less its mean and over its deviation if both are of one kind."""
    from scipy.stats import mannwhitneyu

    n, m = len(x), len(y)
    # The half is the authors' correction for continuity.
    return float(
        (mannwhitneyu(x, y, method="asymptotic").statistic - (n * m / 2 - 0.5)) / math.sqrt(n * m * (n + m + 1) / 12)
    )


def _nearest(queries: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The squared distance of each query to its nearest point, and which that is."""
    found = [(squared.min(axis=1), squared.argmin(axis=1)) for squared in squared_distances(queries, points)]
    distances, numbers = zip(*found, strict=True)
    return np.concatenate(distances), np.concatenate(numbers)


def feature_likelihood(train: np.ndarray, held_out: np.ndarray, generated: np.ndarray) -> tuple[float, float]:
    """FLD and its generalization gap, of rows `(n, d)` in random order; NaN if generated ones are not finite."""
    if not np.isfinite(generated).all():
        return float("nan"), float("nan")
    mean, std = held_out.mean(axis=0), held_out.std(axis=0, ddof=1)
    std = np.where(std > 0.0, std, 1.0)
    train, held_out, generated = ((x - mean) / std for x in (train, held_out, generated))
    half = min(len(generated), len(train) // 2)
    widths = _fitted(generated, train)
    reference = _surprise(train[:half], _fitted(train[:half], train[half:]), held_out)
    unseen = _surprise(generated, widths, held_out)
    return 100.0 * (unseen - reference), 100.0 * (_surprise(generated, widths, train) - unseen)


def _fitted(centres: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The logarithms of the variances of Gaussians around centres, one each, fitted to x by Adam."""
    squared = np.concatenate(list(squared_distances(x, centres)))
    far = _ORIGIN * ((x - x.mean(axis=0)) ** 2).sum(axis=1)
    values = np.append(np.log((squared.min(axis=0) + 1e-3) / x.shape[1]), 0.0)
    first, second, losses = np.zeros_like(values), np.zeros_like(values), list[float]()
    for step in range(1, _EPOCHS + 1):
        loss, gradient = _loss(squared, far, values, x.shape[1])
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        values -= _RATE / (1 - 0.9**step) * first / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        values[:-1] = np.clip(values[:-1], -40.0, 40.0)
        losses.append(loss)
        if step > 6 and max(abs(loss - earlier) for earlier in losses[-5:]) < _STILL:
            break
    return values[:-1]


def _loss(squared: np.ndarray, far: np.ndarray, values: np.ndarray, d: int) -> tuple[float, np.ndarray]:
    """The mean negative log likelihood for each feature, and its gradient by the logarithms of variances."""
    loss, gradient = 0.0, np.zeros_like(values)
    for start in range(0, len(squared), _ROWS):
        rows = slice(start, start + _ROWS)
        apart = np.column_stack([squared[rows], far[rows]]) * (0.5 * np.exp(-values))
        logs = -apart - 0.5 * d * (values + np.log(2 * np.pi))
        logs[:, :-1] -= np.log(squared.shape[1])
        most = logs.max(axis=1, keepdims=True)
        shares = np.exp(logs - most)
        sums = shares.sum(axis=1, keepdims=True)
        loss -= float((most + np.log(sums)).sum())
        shares /= sums
        gradient -= (shares * (apart - 0.5 * d)).sum(axis=0)
    return loss / len(squared) / d, gradient / len(squared) / d


def _surprise(centres: np.ndarray, values: np.ndarray, x: np.ndarray) -> float:
    """The mean negative log likelihood of x for each feature, under Gaussians of these log variances."""
    from scipy.special import logsumexp

    d = x.shape[1]
    constant = 0.5 * d * (values + np.log(2 * np.pi)) + np.log(len(centres))
    blocks = squared_distances(x, centres)
    logs = [logsumexp(-0.5 * squared * np.exp(-values) - constant, axis=1) for squared in blocks]
    return -float(np.concatenate(logs).mean()) / d
