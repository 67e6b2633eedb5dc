"""Classes by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ganlab.commands import several
from ganlab.errors import ConfigError, nearest
from ganlab.files import line
from ganlab.runs import RunDirectory


def class_numbers(run: RunDirectory, requested: int | str | Sequence[int | str] | None) -> list[int]:
    """The numbers of classes that are given by number or by name, as the dataset of the run names them.

    Raises:
        ConfigError: A text is neither the name of a class nor a number.
    """
    names = run.info.get("class_names") or []
    if hasattr(requested, "__array__"):
        requested = np.asarray(requested).tolist()
    given = [] if requested is None else several.values(requested)
    numbers = [names.index(each) if each in names else each for each in given]
    for text in (each for each in numbers if isinstance(each, str) and not (each.isascii() and each.isdecimal())):
        classes = len(run.info.get("label_frequencies") or ())
        numbered = f"the numbers from 0 to {classes - 1}" if classes else "numbers, which have no names"
        known = nearest(text, names) or f" Classes: {', '.join(names) or numbered}."
        raise ConfigError(line(f"label = {text} is not a class of the data.{known}"))
    return several.whole_numbers([int(each) if isinstance(each, str) else each for each in numbers], "labels")
