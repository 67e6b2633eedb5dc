"""Files with the mean and covariance of a dataset's features, so that they are computed once."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ganlab

_FACTS = "ganlab"
_MOST = 1 << 30  # bytes of a file; 4,096 features take 128 MiB


class UnusableError(Exception):
    """The file is not one of statistics, or one of others."""


@dataclass(frozen=True)
class Statistics:
    """The mean and covariance of features.

    Attributes:
        mean: `(d,)` float64.
        covariance: `(d, d)` float64.
        count: Of how many examples; None where the file does not say.
        facts: What they are of; empty where the file does not say.
    """

    mean: np.ndarray
    covariance: np.ndarray
    count: int | None
    facts: dict[str, Any]


def read(path: Path) -> Statistics:
    """Reads a file of this module, or one of pytorch-fid (`mu` and `sigma`). Nothing in it is executed.

    Raises:
        UnusableError: It is damaged, or holds something else.
        OSError: It cannot be opened.
    """
    file = ganlab.open_regular(path)
    try:
        with file:
            if os.fstat(file.fileno()).st_size > _MOST:
                raise UnusableError(f"it has more than {_MOST >> 20} MiB")
            with zipfile.ZipFile(file) as archive:
                largest = max((info.file_size for info in archive.infolist()), default=0)
            if largest > _MOST:
                raise UnusableError(f"it unpacks to more than {_MOST >> 20} MiB")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                mean, covariance = (np.asarray(arrays[name], np.float64) for name in ("mu", "sigma"))
                facts = json.loads(str(arrays[_FACTS])) if _FACTS in arrays.files else {}
    except UnusableError:
        raise
    # A damaged file leads to errors of zipfile, zlib, tokenize, json, or of types and keys.
    except Exception as error:
        raise UnusableError(f"it is damaged ({type(error).__name__}: {error})") from error
    length = len(mean) if mean.ndim == 1 else 0
    if not length or covariance.shape != (length, length) or not isinstance(facts, dict):
        raise UnusableError(
            f"mu is of shape {mean.shape} and sigma of {covariance.shape}; they must be (d,) and (d, d)"
        )
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise UnusableError("it has values that are not finite")
    if not np.allclose(covariance, covariance.T, rtol=1e-4, atol=1e-6 * float(np.abs(covariance).max())):
        raise UnusableError("sigma is not symmetric, as a covariance is")
    count = facts.get("count")
    return Statistics(mean, covariance, count if type(count) is int and 0 < count < 2**63 else None, facts)


def write(path: Path, statistics: Statistics) -> None:
    """Writes a file, completely or not at all; pytorch-fid can read it.

    Raises:
        OSError: It cannot be written.
    """
    facts = {**statistics.facts, "count": statistics.count}
    content = io.BytesIO()
    named: dict[str, Any] = {"mu": statistics.mean, "sigma": statistics.covariance, _FACTS: np.array(json.dumps(facts))}
    np.savez(content, **named)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content.getvalue())
            file.flush()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
