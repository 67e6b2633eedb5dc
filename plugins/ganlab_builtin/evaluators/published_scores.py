"""The scores of image generators as they are published: over whole datasets and 50,000 samples."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le, Local, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.evaluators import comparing, statistics_file
from ganlab_builtin.evaluators.classifying import score
from ganlab_builtin.evaluators.comparing import FROM_ONE, FROM_ZERO, SHARE, OverFeatures, Possible, Sample, in_pieces
from ganlab_builtin.evaluators.frechet import gaussian_frechet
from ganlab_builtin.evaluators.kernel import polynomial_mmd
from ganlab_builtin.evaluators.neighbours import covered, density_and_coverage, neighbour_radii
from ganlab_builtin.evaluators.statistics_file import Statistics
from ganlab_builtin.evaluators.streaming import Moments, Rows, rows_in_a_file

if TYPE_CHECKING:
    from ganlab import Run

_PIECE = 500
_SELECTOR = "evaluators.published_scores"


class PublishedScores(OverFeatures):
    """FID, KID, inception score, precision and recall, by the protocols that published figures follow.

    The reference is the whole dataset. With `features.inception` and the weights of 2015 these are the figures of the
    papers: of 50,000 samples by default, 5,000 in the protocol of Miyato et al. (2018), whose reference are 10,000
    examples. Memory does not grow with the number of examples, for their features lie in a temporary file.

    - `frechet_distance`: Heusel et al. (2017), equation 6, with unbiased covariances, as pytorch-fid.
    - `kernel_distance`: Binkowski et al. (2018), section 4: the mean and the deviation of unbiased estimates from
      subsets drawn without repetition, as torch-fidelity draws them.
    - `inception_score`: Salimans et al. (2016), section 4: the mean and the deviation over equal parts of the samples.
    - `precision`, `recall`: Kynkaanniemi et al. (2019), equations 1 and 2.
    - `density`, `coverage`: Naeem et al. (2020), equations 3 and 4, with the same number of neighbours.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "frechet_distance": "The Fréchet distance between features of samples and of the dataset; smaller is better.",
        "kernel_distance": "The kernel distance, the mean over subsets; smaller is better. Below 0 by chance.",
        "kernel_distance_deviation": "The standard deviation of the kernel distance over subsets.",
        "inception_score": "The mean of the inception score over parts of the samples; larger is better.",
        "inception_score_deviation": "The standard deviation of the inception score over parts of the samples.",
        "precision": "The fraction of samples within the real examples' manifold; larger is better.",
        "recall": "The fraction of real examples within the samples' manifold; larger is better.",
        "density": "How many real examples' neighbourhoods a sample lies in, over the expected number: about 1.",
        "coverage": "The fraction of real examples with a sample in their neighbourhood; larger is better.",
        "nearest": "Of how many samples and examples precision, recall, density and coverage are measured.",
        "samples": "How many samples were measured.",
        "real_examples": "How many examples of the dataset they were measured against.",
    }

    better: ClassVar = {
        **dict.fromkeys(("frechet_distance", "kernel_distance"), "min"),
        **dict.fromkeys(("inception_score", "precision", "recall", "coverage"), "max"),
    }
    possible: ClassVar[Possible] = {
        **dict.fromkeys(("frechet_distance", "density"), FROM_ZERO),
        "inception_score": FROM_ONE,
        **dict.fromkeys(("precision", "recall", "coverage"), SHARE),
    }

    def __init__(
        self,
        *,
        features: ganlab.Features,
        samples: Annotated[int, Ge(2), Le(10**7)] = 50_000,
        real_examples: Annotated[int, Ge(2), Lt(2**31)] | None = None,
        statistics: Annotated[str, Local()] | None = None,
        reference: str | None = None,
        frechet: bool = True,
        subsets: Annotated[int, Ge(0), Lt(2**31)] = 100,
        subset_size: Annotated[int, Ge(2), Lt(2**31)] = 1000,
        splits: Annotated[int, Ge(0), Lt(2**31)] = 10,
        neighbours: Annotated[int, Ge(1), Lt(2**31)] = 3,
        nearest: Annotated[int, Ge(0), Lt(2**31)] = 10_000,
        seed: Annotated[int, Ge(0), Lt(2**31)] = 0,
    ) -> None:
        """Sets the protocol.

        Args:
            features: The space to measure in, for published figures `@features.inception()`.
            samples: How many samples.
            real_examples: How many of the dataset's first examples are the reference; None for all of a finite dataset,
                and as many as samples of an endless one.
            statistics: A file `.npz` of the reference's mean and covariance, read if it exists. One of pytorch-fid is
                read too. The Fréchet distance alone needs no example then. A missing one is written by `ganlab evaluate
                --save-statistics` alone, because settings may be a stranger's.
            reference: Such a file in place of the dataset, whose examples are not looked at. It has no examples for the
                kernel distance and for neighbours: subsets and nearest must be 0.
            frechet: Whether to measure the Fréchet distance.
            subsets: How many subsets the kernel distance is the mean over; 0 for no kernel distance.
            subset_size: Examples of either kind in a subset.
            splits: How many parts the inception score is the mean over; 0 for no such score.
            neighbours: k of precision, recall, density and coverage.
            nearest: Of how many examples of either kind these four are measured; 0 for none of them.
            seed: Decides the noise that samples are drawn from, and the subsets.

        Raises:
            ConfigError: A value is out of its range.
        """
        for name, file in (("statistics", statistics), ("reference", reference)):
            if file is not None and not file.endswith(".npz"):
                raise ganlab.ConfigError(f"{_SELECTOR}.{name} = {file!r} must be a file whose name ends in .npz.")
        if reference is not None and (statistics is not None or subsets or nearest):
            raise ganlab.ConfigError(
                f"{_SELECTOR}.reference = {reference!r} has a mean and a covariance, and no examples: set subsets = 0 "
                "and nearest = 0, and leave statistics out."
            )
        for name, size in (("subset_size", subset_size if subsets else 2), ("splits", splits)):
            if size > samples:
                raise ganlab.ConfigError(
                    f"{_SELECTOR}.{name} = {size!r} must be at most {_SELECTOR}.samples, which is {samples!r}. Set it "
                    f"lower{', or subsets = 0' * (name == 'subset_size')}."
                )
        if nearest and min(nearest, samples) <= neighbours:
            raise ganlab.ConfigError(
                f"{_SELECTOR}.nearest = {nearest!r} and samples = {samples!r} must be above neighbours, which is "
                f"{neighbours!r}; nearest = 0 leaves precision and recall out."
            )
        self.features, self.samples, self.real_examples, self.seed = features, samples, real_examples, seed
        self.subsets, self.subset_size, self.splits = subsets, subset_size, splits
        self.neighbours, self.nearest = neighbours, nearest
        file, self._only, self.frechet = reference or statistics, reference is not None, frechet
        self.statistics = None if file is None else Path(file).expanduser()
        self._unnamed = False
        self._made: Statistics | None = None

    def evaluate(self, sample: Sample, dataset: ganlab.Dataset, run: Run | None) -> dict[str, float]:
        """The figures.

        Returns:
            Those of the class's description, and `samples` and `real_examples`, their numbers, the second unless a
            file of statistics lacks it; NaN where features are not finite.

        Raises:
            IncompatibleError: There are too few real examples, or samples are of another shape.
            ConfigError: The file of statistics cannot be used.
        """
        self.features.prepare(dataset)
        count, shape = self._reference_size(dataset), tuple(dataset.sample_shape)
        with rows_in_a_file() as generated, rows_in_a_file() as real, rows_in_a_file() as probabilities:
            moments = Moments()
            for x in in_pieces("published_scores", sample, shape, samples=self.samples, seed=self.seed, most=_PIECE):
                rows = self._embedded(x)
                moments.add(rows)
                generated.add(rows)
                if self.splits:
                    probabilities.add(self._probabilities(x))
            reference = self._reference(dataset, count, real)
            if reference.mean.shape != moments.mean.shape:
                raise self._refusal(
                    f"is of {len(reference.mean)} features, and {type(self.features).__name__} has "
                    f"{len(moments.mean)}. It was made with others; name a new file."
                )
            figures = {}
            if self.frechet:
                figures["frechet_distance"] = gaussian_frechet(
                    moments.mean, moments.covariance(), reference.mean, reference.covariance
                )
            if self.splits:
                figures |= _inception_score(probabilities, self.splits)
            if self.subsets:
                figures |= self._kernel_distance(generated, real)
            if self.nearest:
                figures |= self._precision_recall(generated, real)
        if not np.isfinite(moments.mean).all():  # parts of the samples may be finite
            figures = dict.fromkeys(figures, float("nan"))
        known = {} if reference.count is None else {"real_examples": float(reference.count)}
        return figures | {"samples": float(moments.count)} | known

    def diagnose(self, figures: Mapping[str, float]) -> str | None:
        """Reports useless features, and statistics of unknown origin."""
        if complaint := super().diagnose(figures):
            return complaint
        if not self._unnamed:
            return None
        return (
            f"{self.statistics} does not say which features and which data it is of. If they are others, the Fréchet "
            "distance means nothing. Leave the file out, and they are made from the dataset."
        )

    def _reference_size(self, dataset: ganlab.Dataset) -> int:
        count = self.real_examples or dataset.size or self.samples
        if dataset.size is not None and count > dataset.size:
            raise ganlab.IncompatibleError(
                f"{_SELECTOR}.real_examples = {count} is more than {type(dataset).__name__} has, {dataset.size}. "
                "Leave it out for all of them."
            )
        for name, least in (
            ("subset_size", self.subset_size * bool(self.subsets)),
            ("neighbours", self.neighbours + 1),
        ):
            if (self.subsets if name == "subset_size" else self.nearest) and count < least:
                raise ganlab.IncompatibleError(
                    f"{_SELECTOR}.{name} needs {least} real examples, and there are {count}. "
                    f"Set {_SELECTOR}.{name} lower."
                )
        return count

    def _embedded(self, x: np.ndarray) -> np.ndarray:
        return comparing.of_finite(x, self.features.embed(x))

    def _probabilities(self, x: np.ndarray) -> np.ndarray:
        probabilities = self.features.probabilities(x)
        if probabilities is None:
            raise ganlab.IncompatibleError(
                f"{_SELECTOR} needs class probabilities for the inception score, and {type(self.features).__name__} "
                f"gives none. Set {_SELECTOR}.splits = 0 to leave that score out."
            )
        return comparing.of_finite(x, probabilities)

    def _reference(self, dataset: ganlab.Dataset, count: int, real: Rows) -> Statistics:
        """The statistics of the real examples, from the file or from the examples, whose rows are kept if needed."""
        facts = self._facts(dataset, count)
        known = None
        if self.statistics is not None and (self._only or self.statistics.exists()):
            known = self._read(facts)
        elif self._made is not None and self._made.facts == facts:
            known = self._made
        if known is not None and not (self.subsets or self.nearest):
            return known
        moments = Moments()
        for start in range(0, count, _PIECE):
            numbers = tf.range(start, min(start + _PIECE, count), dtype=tf.int64)
            rows = self._embedded(np.asarray(dataset.examples(numbers, self.seed)))
            moments.add(rows)
            if self.subsets or self.nearest:
                real.add(rows)
        if known is not None:
            return known
        self._made = statistics = Statistics(moments.mean, moments.covariance(), count, facts)
        return statistics

    def write_statistics(self) -> None:
        """Writes the file of statistics, if it is named and missing, from the last evaluation.

        Raises:
            ConfigError: It cannot be written.
        """
        if self.statistics is None or self._made is None or self.statistics.exists():
            return
        try:
            statistics_file.write(self.statistics, self._made)
        except OSError as error:
            raise self._refusal(f"cannot be written: {error.strerror or error}.") from error

    def _facts(self, dataset: ganlab.Dataset, count: int) -> dict[str, Any]:
        """The origin of the statistics. Features are described by sixteen numbers that they make of a pattern."""
        shape = tuple(dataset.sample_shape)
        pattern = np.sin(np.arange(2 * int(np.prod(shape)), dtype=np.float32)).reshape(2, *shape)
        data = json.dumps(dataset.fingerprint(), sort_keys=True, default=str)
        return {
            "data": hashlib.sha256(data.encode()).hexdigest()[:20],
            "real_examples": count,
            "features": self.features.fingerprint(),
            "pattern": [float(v) for v in self._embedded(pattern).ravel()[:: max(1, self._width(pattern) // 8)][:16]],
        }

    def _width(self, pattern: np.ndarray) -> int:
        return int(self._embedded(pattern[:1]).shape[1])

    def _read(self, facts: dict[str, Any]) -> Statistics:
        assert self.statistics is not None
        try:
            statistics = statistics_file.read(self.statistics)
        except (statistics_file.UnusableError, OSError) as error:
            raise self._refusal(f"cannot be used: {error}.") from error
        self._unnamed = not statistics.facts
        if statistics.facts:
            stored, own = statistics.facts.get("features"), facts["features"]
            if stored and own and stored != own:
                raise self._refusal(f"was made with other features: {stored} and not {own}. Name a new file for these.")
            stored, own = statistics.facts.get("pattern"), facts["pattern"]
            if not _near(stored, own):
                raise self._refusal("was made with other features. Name a new file for these.")
            for name, difference in (
                () if self._only else (("data", "of other data"), ("real_examples", "of another number of examples"))
            ):
                if statistics.facts.get(name) != facts[name]:
                    raise self._refusal(f"is {difference}. Name a new file for these.")
        return statistics

    def _refusal(self, rule: str) -> ganlab.ConfigError:
        name = "reference" if self._only else "statistics"
        return ganlab.ConfigError(f"{_SELECTOR}.{name} = {str(self.statistics)!r} {rule}")

    def _kernel_distance(self, generated: Rows, real: Rows) -> dict[str, float]:
        # torch-fidelity's generator and order, so that the same features have the same subsets.
        random = np.random.RandomState(self.seed)
        distances = []
        for _ in range(self.subsets):
            x, y = (rows.take(random.choice(rows.count, self.subset_size, replace=False)) for rows in (generated, real))
            distances.append(polynomial_mmd(x, y))
        return {"kernel_distance": float(np.mean(distances)), "kernel_distance_deviation": float(np.std(distances))}

    def _precision_recall(self, generated: Rows, real: Rows) -> dict[str, float]:
        x, y = (rows.take(range(min(self.nearest, rows.count))) for rows in (generated, real))
        if not (np.isfinite(x).all() and np.isfinite(y).all()):
            return dict.fromkeys(("precision", "recall", "density", "coverage"), float("nan"))
        radii = neighbour_radii(y, self.neighbours)
        density, coverage = density_and_coverage(x, y, radii, self.neighbours)
        return {
            "precision": covered(x, y, radii),
            "recall": covered(y, x, neighbour_radii(x, self.neighbours)),
            "density": density,
            "coverage": coverage,
            "nearest": float(min(len(x), len(y))),
        }


def _inception_score(probabilities: Rows, splits: int) -> dict[str, float]:
    # Where the parts cannot be equal, as openai/improved-gan at 4f5d1ec cuts them, inception_score/model.py:48.
    edges = [i * probabilities.count // splits for i in range(splits + 1)]
    scores = [score(probabilities.take(np.arange(*part))) for part in itertools.pairwise(edges)]
    return {"inception_score": float(np.mean(scores)), "inception_score_deviation": float(np.std(scores))}


def _near(stored: Any, computed: list[float]) -> bool:
    """Whether two lists of numbers agree but for rounding."""
    try:
        values = np.asarray(stored, np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return values.shape == (len(computed),) and bool(
        np.allclose(values, computed, rtol=1e-2, atol=1e-3 * np.abs(computed).max())
    )
