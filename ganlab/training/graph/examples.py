"""Refuses examples that cannot be trained on, and names their numbers."""

from __future__ import annotations

import numpy as np

from ganlab.errors import ContractError
from ganlab.interfaces import Dataset
from ganlab.plugins.recipes import selector_of

_LISTED = 5


def check_finite_examples(dataset: Dataset, numbers: np.ndarray, examples: np.ndarray) -> None:
    """Refuses examples of a dataset, `(n, ...)`, with these numbers, `(n,)`, if one has a value that is not finite."""
    finite = np.isfinite(examples).reshape(len(numbers), -1).all(axis=1)
    if not finite.all():
        listed = ", ".join(map(str, sorted(set(numbers[~finite].tolist()))[:_LISTED]))
        raise ContractError(
            f"{selector_of(dataset)} gives values that are not finite (NaN or infinity), in example {listed}. Fix the "
            "data, or leave such examples out."
        )
