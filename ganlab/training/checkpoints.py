"""Checkpoints: everything that training changes, in one folder that exists complete or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from ganlab.errors import RunError
from ganlab.support.durable import sync
from ganlab.support.paths import is_name, open_inside, open_stored, read_inside
from ganlab.support.schema import FIGURE, TEXT, InvalidError, Rule, fields, items, null_or, table, whole
from ganlab.support.strict_json import parse_json
from ganlab.telemetry import Record
from ganlab.telemetry.jsonl import to_json
from ganlab.training.bundle_index import check_index
from ganlab.training.graph.replica import Metric
from ganlab.training.graph.values import may_be_infinite
from ganlab.training.graph.variables import at_most
from ganlab.training.stored_variables import kept, misfit

KEEP = 3
_VARIABLES, _PENDING, _MANIFEST = "variables", "pending.npy", "manifest.json"
# The largest manifest, in bytes: that of a million variables.
_LARGEST = 1 << 28
# What variables may take beyond those of a checkpoint, in bytes.
_SPARE = 1 << 26
# A checkpoint that resuming finds damaged gets this prefix, so that it is neither used nor counted again.
_DAMAGED = "damaged-"
_NAME = re.compile(r"step-[0-9]{8,18}")

_RECORD = Rule(
    "a metric's name, its value and those of the replicas",
    lambda value: isinstance(value, list) and len(value) == 3,
    lambda value: zip(("[0]", "[1]", "[2]"), value, (TEXT, FIGURE, items(FIGURE)), strict=True),
)
_SCHEMA = fields(
    {
        "replicas": whole(1),
        "metrics": items(TEXT),
        "files": table(fields({"bytes": whole(0, 2**63), "sha256": TEXT}), names=is_name),
        "checksum": TEXT,
    },
    {
        "owed": null_or(items(_RECORD)),
        # What each action of training keeps in it, that action reads.
        "watch": fields({}, {"warned": null_or(table(whole(-1))), "rows": null_or(whole())}),
    },
)


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
        """The checkpoint's path as `tf.train` expects it."""
        return str(self.path / _VARIABLES)

    @property
    def pending_row(self) -> list[Record] | None:
        """The row of this step if a resumed run must still write it, with the evaluation that may be due; else None."""
        row = self._manifest().get("owed")
        return row and [Record(self.step, tag, float(value), tuple(map(float, each))) for tag, value, each in row]

    @property
    def last_row(self) -> int:
        """The last step whose row, if it has one, was written before."""
        return self.step - (self.pending_row is not None)

    @property
    def watch(self) -> dict[str, Any]:
        """The state of the run's warnings, diagnostics and evaluators; empty if the checkpoint does not record it."""
        watch: dict[str, Any] = self._manifest().get("watch", {})
        return watch

    @property
    def warned(self) -> dict[str, int] | None:
        """The run's warnings up to this step, each with its step; None if the checkpoint does not record them."""
        return self.watch.get("warned")

    @property
    def rows(self) -> int | None:
        """How many rows had been written, without a pending one; None if the checkpoint does not record it."""
        rows = self.watch.get("rows")
        return None if rows is None else rows - bool(self.pending_row)

    @contextlib.contextmanager
    def using(self, what: str) -> Iterator[None]:
        """Context manager: reports errors in the use of a part of the manifest as a damaged checkpoint.

        Raises:
            RunError: The part is invalid.
        """
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise self._damaged(
                _MANIFEST, f"{what} is not what ganlab writes ({type(error).__name__}: {error})"
            ) from error

    def check_fits(self, metrics: Sequence[Metric], replicas: int) -> None:
        """Checks that a run may resume from here.

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
                    "plugins or devices have changed. Restore them, pass --allow-changes, or start a new run."
                )

    def damage(self) -> str | None:
        """Describes damage to its files, or returns None: each must have the size and SHA-256 it was written with.

        Reads every file completely.
        """
        try:
            manifest = self._parsed()
        except OSError as error:
            return f"{_MANIFEST} cannot be read ({error.strerror})"
        except InvalidError as error:
            return f"{_MANIFEST}: {error}"
        except (ValueError, RunError):
            return f"{_MANIFEST} is torn"
        if manifest.pop("checksum") != _checksum(manifest):
            return f"{_MANIFEST} has changed since it was written"
        for name, then in manifest["files"].items():
            try:
                with open_stored(self.path, name) as file:
                    size = os.fstat(file.fileno()).st_size
                    if size != then["bytes"]:
                        return f"{name} is not what was written: {size} of {then['bytes']} bytes"
                    if hashlib.file_digest(file, "sha256").hexdigest() != then["sha256"]:
                        return f"{name} is not what was written"
            except (OSError, RunError) as error:
                return f"{name} cannot be read ({getattr(error, 'strerror', error)})"
        try:
            check_index(self.path)
        except (OSError, ValueError, RunError) as error:
            return f"{_VARIABLES}.index: {getattr(error, 'strerror', error)}"
        return None

    def not_finite(self) -> str | None:
        """The name of a variable that is not finite, or None; training cannot continue from such a checkpoint.

        The state of a constraint may hold infinity, for example as the smallest value before the first one.

        Raises:
            RunError: The variables cannot be read.
        """
        for name, value in self.values():
            bad = np.isnan(value) if may_be_infinite(name) else ~np.isfinite(value)
            if bad.any():
                return name
        return None

    def values(self) -> Iterator[tuple[str, np.ndarray]]:
        """The names and values of the variables that hold floating-point numbers, in the order of their names.

        Raises:
            RunError: They cannot be read.
        """
        try:
            reader = tf.train.load_checkpoint(self.prefix)
            for name, (key, dtype, _) in sorted(kept(reader).items()):
                if dtype.is_floating:
                    yield name, np.asarray(reader.get_tensor(key), dtype.as_numpy_dtype)
        except (ValueError, IndexError, RuntimeError, tf.errors.OpError) as error:
            raise self._damaged(_VARIABLES, error) from error

    def bounding(self) -> contextlib.AbstractContextManager[None]:
        """Context manager: refuses networks that are larger than the checkpoint before memory is taken for them.

        Raises:
            RunError: They are larger, or the checkpoint cannot be read.
        """
        try:
            held = kept(tf.train.load_checkpoint(self.prefix)).values()
        except (ValueError, RuntimeError, tf.errors.OpError) as error:
            raise self._damaged(_VARIABLES, error) from error
        size = sum(dtype.size * math.prod(shape) for _, dtype, shape in held)
        return at_most(
            size + _SPARE,
            RunError(
                f"The checkpoint {self.path} does not fit this experiment: with {size:,} bytes it is smaller than the "
                "networks that the experiment's file asks for."
            ),
        )

    def _manifest(self) -> dict[str, Any]:
        try:
            return self._parsed()
        except (OSError, ValueError, RunError) as error:
            raise self._damaged(_MANIFEST, error) from error

    def _parsed(self) -> dict[str, Any]:
        manifest: dict[str, Any] = parse_json(read_inside(self.path, _MANIFEST, most=_LARGEST))
        _SCHEMA.check(manifest)
        return manifest

    def pending(self) -> np.ndarray:
        """Metrics of the iterations since the last logged row, `(iterations, replicas, metrics)`.

        Raises:
            RunError: They cannot be read.
        """
        try:
            with open_inside(self.path, _PENDING) as file:
                values = np.load(file, allow_pickle=False)
            if not isinstance(values, np.ndarray) or values.dtype != np.float32:
                raise ValueError("it does not hold float32 numbers")
            return values
        except Exception as error:  # a torn file leads to errors of tokenize, zipfile, or of memory, among others
            raise self._damaged(_PENDING, error) from error

    def _damaged(self, file: str, reason: object) -> RunError:
        return RunError(
            f"The checkpoint {self.path} is damaged: {file}: {reason}. Remove its folder to resume from an earlier one."
        )


class Checkpoints:
    """The checkpoints of one run, oldest first; the last few are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> list[Checkpoint]:
        """The complete checkpoints."""
        paths = [each.parent for each in self._folder.glob(f"step-*/{_MANIFEST}") if each.is_file()]
        named = [path for path in paths if _NAME.fullmatch(path.name)]
        checkpoints = [Checkpoint(path, int(path.name.removeprefix("step-"))) for path in named]
        return sorted(checkpoints, key=lambda checkpoint: checkpoint.step)

    def latest(self) -> Checkpoint | None:
        """The newest, or None."""
        return next(reversed(self.all()), None)

    def latest_sound(self, say: Callable[[str], None], *, repair: bool = True) -> Checkpoint | None:
        """The newest checkpoint whose files are as they were written and whose variables are finite, or None.

        Args:
            say: Called with a sentence for each damaged checkpoint.
            repair: Whether to put the damaged ones aside.
        """
        for checkpoint in reversed(self.all()):
            damage = checkpoint.damage()
            if damage is None and (name := checkpoint.not_finite()):
                damage = f"its variable {name} is not finite"
            if damage is None:
                return checkpoint
            say(f"The checkpoint {checkpoint.path} is damaged: {damage}. It is not used.")
            if repair:
                aside = checkpoint.path.with_name(f"{_DAMAGED}{checkpoint.path.name}")
                with contextlib.suppress(OSError):  # nothing is lost if the folder cannot be written to
                    shutil.rmtree(aside, ignore_errors=True)
                    checkpoint.path.rename(aside)
        return None

    def save(
        self,
        step: int,
        variables: Mapping[str, tf.Variable],
        pending: np.ndarray,
        *,
        metrics: Sequence[Metric],
        replicas: int,
        pending_row: Sequence[Record] | None = None,
        watch: Mapping[str, Any] | None = None,
        best: int | None = None,
    ) -> Checkpoint:
        """Writes a checkpoint aside and then moves it into place; older ones beyond the last few are removed.

        Args:
            step: Generator updates done.
            variables: By stable names.
            pending: Metrics of the iterations since the last row.
            metrics: The logged metrics, in the order of `pending`.
            replicas: How many there are.
            pending_row: The row of this step if the run stops before it is written: the resumed run writes it and
                evaluates.
            watch: The state of the run's warnings, diagnostics and evaluators, as plain values.
            best: The step of an older checkpoint that stays, or None.

        Raises:
            OSError: It cannot be written.
        """
        target = self._folder / f"step-{step:08d}"
        manifest = {
            "step": step,
            "replicas": replicas,
            "metrics": [metric.tag for metric in metrics],
            "owed": None
            if pending_row is None
            else to_json([(r.tag, float(r.reduced), r.replicas) for r in pending_row]),
            "watch": to_json(watch or {}),
        }
        try:
            if not self._folder.exists():
                self._folder.mkdir(parents=True)
                sync(self._folder.parent)
            for left in self._folder.glob(".step-*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            aside = self._folder / f".{target.name}"
            aside.mkdir()
            try:
                _write(aside, manifest, variables, pending)
                if target.exists():  # a resumed run is at a step that it had already saved: the same numbers
                    shutil.rmtree(target)
                aside.rename(target)
                sync(self._folder)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
        except tf.errors.OpError as error:
            reason = str(error).strip().split("\n")[0]
            raise OSError(f"the checkpoint {target.name}: {reason}") from error
        for old in self.all()[:-KEEP]:
            if old.step != best:
                shutil.rmtree(old.path, ignore_errors=True)
        return Checkpoint(target, step)


def restore(checkpoint: Checkpoint, variables: Mapping[str, tf.Variable], *, partial: bool = False) -> None:
    """Gives every variable its value from a checkpoint.

    Args:
        checkpoint: The checkpoint to read.
        variables: By the names that they were saved under.
        partial: Whether the checkpoint may hold more than these.

    Raises:
        RunError: A variable is missing in the checkpoint, its shape differs, or the checkpoint holds more.
    """
    try:
        # First, because TensorFlow warns of every variable that it leaves.
        if reason := misfit(kept(tf.train.load_checkpoint(checkpoint.prefix)), variables, partial):
            raise RunError(f"The checkpoint {checkpoint.path} does not fit this experiment: {reason}.")
        # Reads what `write` below wrote, no save counter.
        status = tf.train.Checkpoint(variables=dict(variables)).read(checkpoint.prefix)
        status.expect_partial().assert_existing_objects_matched()
    # A file that is short, corrupt or gone, or a graph of objects that does not fit itself.
    except (AssertionError, ValueError, LookupError, TypeError, RuntimeError, DecodeError, tf.errors.OpError) as error:
        reason = str(error).strip().split("\n")[0]
        raise RunError(
            f"The checkpoint {checkpoint.path} is damaged: {reason}. Remove its folder to resume from an earlier one."
        ) from error


def _write(
    folder: Path, manifest: Mapping[str, Any], variables: Mapping[str, tf.Variable], pending: np.ndarray
) -> None:
    tf.train.Checkpoint(variables=dict(variables)).write(str(folder / _VARIABLES))
    np.save(folder / _PENDING, pending, allow_pickle=False)
    files = {path.name: _fingerprint(path) for path in sorted(folder.iterdir())}
    whole = {**manifest, "files": files}
    text = json.dumps({**whole, "checksum": _checksum(whole)}, indent=1)
    (folder / _MANIFEST).write_text(text + "\n", encoding="utf-8")
    for path in [*folder.iterdir(), folder]:
        sync(path)


def _fingerprint(path: Path) -> dict[str, Any]:
    with open_inside(path.parent, path.name) as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
