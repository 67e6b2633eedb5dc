"""Checkpoints: everything training changes, in one folder that is there whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.errors import RunError
from ganlab.training.replica import Metric

KEEP = 3
_VARIABLES, _PENDING, _MANIFEST = "variables", "pending.npy", "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk.

    Attributes:
        path: Its folder.
        step: Generator updates done.
    """

    path: Path
    step: int

    @property
    def prefix(self) -> str:
        """What `tf.train` calls the checkpoint's path."""
        return str(self.path / _VARIABLES)

    @property
    def owes_evaluation(self) -> bool:
        """Whether an evaluation was due at this step and failed."""
        return bool(self._manifest().get("owes_evaluation"))

    def check_fits(self, metrics: Sequence[Metric], replicas: int) -> None:
        """Checks that a run may go on from here.

        Raises:
            RunError: It was written with other metrics or another number of replicas.
        """
        then = self._manifest()
        for what, before, now in (
            ("metrics", then.get("metrics"), [metric.tag for metric in metrics]),
            ("replicas", then.get("replicas"), replicas),
        ):
            if before != now:
                raise RunError(
                    f"The checkpoint {self.path} was written with the {what} {before}, and now there are {now}: "
                    "plugins or devices have changed. Go on as it was, or start a new run."
                )

    def _manifest(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.path / _MANIFEST).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise RunError(
                f"The checkpoint {self.path} is damaged: {_MANIFEST}: {error}. Remove its folder."
            ) from error

    def pending(self) -> np.ndarray:
        """Metrics of the iterations since the last logged row, `(iterations, replicas, metrics)`.

        Raises:
            RunError: They cannot be read.
        """
        try:
            return np.load(self.path / _PENDING, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise RunError(
                f"The checkpoint {self.path} is damaged: {_PENDING}: {error}. Remove its folder to go on from an "
                "earlier one."
            ) from error


class Checkpoints:
    """The checkpoints of one run, oldest first; the last few are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> list[Checkpoint]:
        """Those that are complete."""
        found = [path for path in self._folder.glob("step-*") if (path / _MANIFEST).is_file()]
        checkpoints = [Checkpoint(path, int(path.name.removeprefix("step-"))) for path in found]
        return sorted(checkpoints, key=lambda checkpoint: checkpoint.step)

    def latest(self) -> Checkpoint | None:
        """The newest, or None."""
        found = self.all()
        return found[-1] if found else None

    def save(
        self,
        step: int,
        variables: Mapping[str, tf.Variable],
        pending: np.ndarray,
        *,
        metrics: Sequence[Metric],
        replicas: int,
        owes_evaluation: bool = False,
    ) -> Checkpoint:
        """Writes a checkpoint aside and then moves it into place; older ones beyond the last few are removed.

        Args:
            step: Generator updates done.
            variables: By stable names.
            pending: Metrics of the iterations since the last row.
            metrics: What is logged, in the order of `pending`.
            replicas: How many there are.
            owes_evaluation: Whether an evaluation was due at this step and failed.

        Raises:
            RunError: It cannot be written.
        """
        target = self._folder / f"step-{step:08d}"
        manifest = {
            "step": step,
            "replicas": replicas,
            "metrics": [metric.tag for metric in metrics],
            "owes_evaluation": owes_evaluation,
            "variables": {name: [v.dtype.name, list(v.shape)] for name, v in variables.items()},
        }
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for left in self._folder.glob(".step-*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            aside = self._folder / f".{target.name}"
            aside.mkdir()
            try:
                _write(aside, manifest, variables, pending)
                if target.exists():  # a resumed run is at a step that it had saved already: the same numbers
                    shutil.rmtree(target)
                aside.rename(target)
                _sync(self._folder)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
        except (OSError, tf.errors.OpError) as error:
            raise RunError(f"The checkpoint {target} cannot be written: {error}") from error
        for old in self.all()[:-KEEP]:
            shutil.rmtree(old.path, ignore_errors=True)
        return Checkpoint(target, step)


def restore(checkpoint: Checkpoint, variables: Mapping[str, tf.Variable], *, partial: bool = False) -> None:
    """Gives every variable its value from a checkpoint.

    Args:
        checkpoint: Where from.
        variables: By the names that they were saved under.
        partial: Whether the checkpoint may hold more than these.

    Raises:
        RunError: A variable is not in the checkpoint, has another shape there, or the checkpoint holds more.
    """
    try:
        status = _trackable(variables).read(checkpoint.prefix)  # what `write` below wrote, without a save counter
        status.assert_existing_objects_matched()
        if partial:
            status.expect_partial()  # or TensorFlow warns of every variable that was left
        else:
            status.assert_consumed()
    except (AssertionError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise RunError(f"The checkpoint {checkpoint.path} does not fit this experiment: {reason}") from error
    except (IndexError, RuntimeError, tf.errors.OpError) as error:  # a file that is short, corrupt or gone
        reason = str(error).strip().split("\n")[0]
        raise RunError(
            f"The checkpoint {checkpoint.path} is damaged: {reason}. Remove its folder to go on from an earlier one."
        ) from error


def _trackable(variables: Mapping[str, tf.Variable]) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(variables=dict(variables))


def _write(
    folder: Path, manifest: Mapping[str, Any], variables: Mapping[str, tf.Variable], pending: np.ndarray
) -> None:
    _trackable(variables).write(str(folder / _VARIABLES))
    np.save(folder / _PENDING, pending, allow_pickle=False)
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for path in folder.iterdir():
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
