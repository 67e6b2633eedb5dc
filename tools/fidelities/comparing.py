"""How far two programs' numbers lie apart, and the records of one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fidelities.recipe import Case, summary

RECORDS = Path(__file__).resolve().parents[2] / "tests" / "fidelity" / "records"
LIMIT = 1e-5
# The part of the largest norm in a group below which a gradient is one of rounding: that of a bias before a batch
# normalization, for example, is zero. Adam makes updates of ordinary size of it, which are not compared.
_ROUNDING = 1e-8


def differences(ours: Mapping[str, np.ndarray], reference: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """By name, the difference of norms or of products with a random array, the larger, over the reference's norm.

    Args:
        ours: Arrays.
        reference: The norm and the product of each array of the reference.

    Returns:
        Infinity for an array that only one of the two has.
    """
    largest: dict[str, float] = {}
    for name, (norm, _) in reference.items():
        largest[_group(name)] = max(largest.get(_group(name), 0.0), norm)
    rounding = {name for name, (norm, _) in reference.items() if norm <= _ROUNDING * largest[_group(name)]}
    found = dict.fromkeys({*ours} ^ {*reference}, np.inf)
    for name in {*ours} & {*reference}:
        if name.replace("_update/", "_gradient/") in rounding - {name}:
            continue
        here, there = summary(name, ours[name]), reference[name]
        scale = largest[_group(name)] if name in rounding else there[0]
        found[name] = max(abs(a - b) for a, b in zip(here, there, strict=True)) / scale if scale else np.inf
    return found


def record(
    case: Case, numbers: Mapping[str, np.ndarray], parameters: Mapping[str, int], program: str, folder: Path
) -> Path:
    """Writes the reference's numbers to a file of a folder."""
    file = folder / f"{case.name}.json"
    rows = {name: summary(name, array) for name, array in numbers.items()}
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    head = f'  "reference": {json.dumps(program)},\n  "parameters": {json.dumps(dict(parameters))},\n'
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{\n{head}  "numbers": {{\n{lines}\n  }}\n}}\n')
    return file


def recorded(case: Case, folder: Path = RECORDS) -> dict:
    """The record of a case: `reference`, `parameters` and `numbers`."""
    return json.loads((folder / f"{case.name}.json").read_text())


def _group(name: str) -> str:
    return name.split("/")[0]
