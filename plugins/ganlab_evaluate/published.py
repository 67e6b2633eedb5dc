"""Published scores of a folder of images, asked for in the words of papers: fid, kid, is, prdc."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ganlab import ConfigError
from ganlab.commands import Override

_SCORES = "evaluators.published_scores"
_NETWORK = "features.inception"
# By metric, the setting without which it is not measured, and the value for that.
_WITHOUT = {"fid": "frechet=False", "kid": "subsets=0", "is": "splits=0", "prdc": "nearest=0"}
_OF_EXAMPLES = ("kid", "prdc")


@dataclass(frozen=True)
class Asked:
    """Scores to measure.

    Attributes:
        weights: The file of the network's weights.
        metrics: Which scores, in any order.
        statistics: A file for the reference's mean and covariance, or None.
        reference: A file of statistics that takes the place of real images, or None.
    """

    weights: Path
    metrics: tuple[str, ...]
    statistics: Path | None
    reference: str | None

    def overrides(self, images: int) -> list[Override]:
        """The settings of an experiment that measures them, of so many images."""
        origin = f"--weights {str(self.weights)!r}"
        left_out = [setting for metric, setting in _WITHOUT.items() if metric not in self.metrics]
        settings = [
            f"experiment.evaluators=[@{_SCORES}()]",
            f"{_SCORES}.features=@{_NETWORK}()",
            f"{_NETWORK}.path={self.weights}",
            f"{_SCORES}.samples={images}",
        ]
        found = [Override(text, origin) for text in settings]
        found += [Override(f"{_SCORES}.{setting}", f"--metrics {','.join(self.metrics)}") for setting in left_out]
        if self.statistics is not None:
            path = str(self.statistics)
            found.append(Override(f"{_SCORES}.statistics={path}", f"--save-statistics {path!r}"))
        if self.reference is not None:
            found.append(Override(f"{_SCORES}.reference={self.reference}", f"--against {self.reference!r}"))
        return found


def asked(weights: Path, metrics: str | None, statistics: Path | None, against: str) -> Asked:
    """Reads the options.

    Args:
        weights: The file of the network's weights.
        metrics: Names with commas between them; None for all that are possible.
        statistics: A file for the reference's statistics, or None.
        against: The reference: a file of statistics if it ends in `.npz`.

    Raises:
        ConfigError: There is no such metric, or it cannot be measured against this reference.
    """
    reference = against if against.endswith(".npz") else None
    possible = [name for name in _WITHOUT if reference is None or name not in _OF_EXAMPLES]
    names = tuple(possible) if metrics is None else tuple(name.strip() for name in metrics.split(","))
    for name in names:
        if name not in _WITHOUT:
            raise ConfigError(f"--metrics {metrics!r}: there is no {name!r}; name some of {', '.join(_WITHOUT)}.")
        if name not in possible:
            raise ConfigError(
                f"--metrics {metrics!r}: {name} compares images, and --against {against!r} has only a mean and a "
                f"covariance. Name the folder of real images, or only {', '.join(possible)}."
            )
    if reference is not None and statistics is not None:
        raise ConfigError(
            f"--save-statistics {str(statistics)!r} keeps those of real images, and --against {against!r} already is "
            "such a file. Leave one of them out."
        )
    return Asked(weights, names, statistics, reference)
