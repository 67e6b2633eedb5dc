"""The data that the files of gin/published name."""

from __future__ import annotations

from dataclasses import dataclass

from ganlab.plugins.recipes import Recipe

# Of the sets that datasets.keras has: pixels on a side, and channels. Both have ten classes.
_KERAS = {"mnist": (28, 1), "cifar10": (32, 3)}
# Classes of the sets of TensorFlow Datasets whose labels a file asks for.
_TFDS = {"imagenet2012": 1000}


@dataclass(frozen=True)
class Data:
    """The images of an experiment.

    Attributes:
        place: The parameter that names the dataset: the experiment's, or that of a dataset around it.
        side: Their height and width.
        channels: Their channels.
        classes: How many classes there are; None without labels.
    """

    place: str
    side: int
    channels: int
    classes: int | None


def data(experiment: Recipe) -> Data:
    """The images that an experiment file names, whether or not they are here."""
    dataset, place = experiment.arguments["dataset"], "experiment.dataset"
    while inner := dataset.arguments.get("dataset"):
        place, dataset = f"datasets.{dataset.name}.dataset", inner
    given = dataset.arguments
    if dataset.name == "keras":
        return Data(place, *_KERAS[given["name"]], 10)
    return Data(place, given.get("resize") or given["crop"], 3, _TFDS[given["name"]] if given.get("labels") else None)
