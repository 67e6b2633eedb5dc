"""Sends a run's settings, metrics and status to MLflow."""

from __future__ import annotations

import itertools
import math
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import ganlab
from ganlab.lazy import install
from ganlab_builtin.trackers import project_and_name

_ENDS = {"completed": "FINISHED", "interrupted": "KILLED"}
_ID = "mlflow_run_id"
# What MLflow's stores accept: the characters and the length of a name, the length of a value, and parameters and
# metrics in one request.
_STRANGE, _NAME, _VALUE, _PARAMS, _METRICS = re.compile(r"[^\w.\-/: ]"), 250, 500, 100, 1000
# Requests to a server that does not answer must end before ganlab gives the tracker up.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}

_T = TypeVar("_T")


class MlflowTracker:
    """Follows runs into MLflow: the server or folder of `MLFLOW_TRACKING_URI`, or the folder `mlruns` where you are.

    A run is one of MLflow's in the experiment `MLFLOW_EXPERIMENT_NAME`, by default the name of its parent folder, or of
    its sweep. Settings become parameters, `config.gin` an artifact, and each metric appears reduced, under its tag, and
    by replica, as `replica/0/TAG`; with `/all` at the end where other tags go on after it. Figures that are not finite
    become tags `not finite/TAG`, since not all of MLflow's stores keep them. The id of MLflow's run is in the run's
    folder, so that a resumed run continues it.
    """

    def __init__(self) -> None:
        self._id = ""
        self._had: dict[str, int] = {}
        self._folders: set[str] = set()
        self._client: Any = None

    @ganlab.hookimpl
    def ganlab_run_start(self, run: ganlab.Run) -> None:
        """Opens or continues MLflow's run."""
        self._id = ""
        self._client = client = _connected()
        note = run.path / _ID
        before = note.read_text(encoding="utf-8").strip()[:64] if note.exists() else ""
        if before and _is_there(client, before):
            self._id = before
            client.update_run(self._id, status="RUNNING")
            reduced = [tag for tag in client.get_run(self._id).data.metrics if not tag.startswith("replica/")]
            self._had = {tag: max(m.step for m in client.get_metric_history(self._id, tag)) for tag in reduced}
            return
        project, name = project_and_name(run)
        title = os.environ.get("MLFLOW_EXPERIMENT_NAME") or project
        experiment = client.get_experiment_by_name(title)
        number = experiment.experiment_id if experiment else client.create_experiment(title)
        self._id, self._had = client.create_run(number, run_name=name).info.run_id, {}
        note.write_text(self._id, encoding="utf-8")
        self._describe(run)
        if before:
            warnings.warn(
                f"MLflow has no run {before!r} here, as which {run.path.name} was begun: a new one has all of its "
                "metrics. If it is on another server or in another folder, set MLFLOW_TRACKING_URI.",
                stacklevel=2,
            )
            rows = (list(row) for _, row in itertools.groupby(run.iter_metrics(), lambda record: record.step))
            for row in rows:
                self.ganlab_metrics(run, row)

    @ganlab.hookimpl
    def ganlab_metrics(self, run: ganlab.Run, records: Sequence[ganlab.Record]) -> None:
        """Sends a row."""
        if not self._id:  # the start failed, and has been reported
            return
        from mlflow.entities import Metric, RunTag

        now, metrics, odd = int(time.time() * 1000), [], []
        names = [name for record in records for name, _ in _values(record)]
        self._folders |= {name[:at] for name in names for at, letter in enumerate(name) if letter == "/"}
        for record in records:
            if record.step <= self._had.get(self._key(_name(record.tag)), -1):
                continue
            for tag, value in ((self._key(name), value) for name, value in _values(record)):
                if math.isfinite(value):
                    metrics.append(Metric(tag, value, now, record.step))
                else:
                    odd.append(RunTag(_name(f"not finite/{tag}"), f"{value} at step {record.step}"))
        for part in _parts(metrics, _METRICS):
            self._client.log_batch(self._id, metrics=part)
        for tags in _parts(odd, _PARAMS):
            self._client.log_batch(self._id, tags=tags)

    @ganlab.hookimpl
    def ganlab_run_end(self, run: ganlab.Run, status: str) -> None:
        """Records how training ended."""
        if self._id:
            self._client.set_tag(self._id, "ganlab.status", status)
            self._client.set_terminated(self._id, _ENDS.get(status, "FAILED"))

    def _key(self, name: str) -> str:
        """A name in MLflow, whose folders keep a metric as a file, so that no other's name may go on after it."""
        return f"{name}/all" if name in self._folders else name

    def _describe(self, run: ganlab.Run) -> None:
        from mlflow.entities import Param

        settings: Mapping[str, Any] = run.info.get("settings") or {}
        parameters = {_name(key): str(value)[:_VALUE] for key, value in settings.items()}
        for part in _parts([Param(key, value) for key, value in parameters.items()], _PARAMS):
            self._client.log_batch(self._id, params=part)
        self._client.log_text(self._id, run.config, "config.gin")


def _connected() -> Any:
    for name, value in _PATIENCE.items():
        os.environ.setdefault(name, value)
    if not os.environ.get("MLFLOW_TRACKING_URI", "").partition(":")[0].startswith(("http", "databricks", "sql")):
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        from mlflow import MlflowClient
    except ImportError as error:
        raise ganlab.MissingDependencyError(
            f"GANLAB_TRACKERS=mlflow needs MLflow ({error}). Install it: {install('mlflow')}"
        ) from None
    where = os.environ.get("MLFLOW_TRACKING_URI") or f"file:{os.path.abspath('mlruns')}"
    return MlflowClient(where)


def _is_there(client: Any, run_id: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.get_run(run_id).info.lifecycle_stage == "active")
    except MlflowException as error:
        if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):  # the second if it is no id
            return False
        raise


def _values(record: ganlab.Record) -> Iterator[tuple[str, float]]:
    yield _name(record.tag), float(record.reduced)
    for number, value in enumerate(record.replicas):
        yield _name(f"replica/{number}/{record.tag}"), float(value)


def _name(text: str) -> str:
    """A name as MLflow accepts it; it would refuse the whole row for one character."""
    parts = _STRANGE.sub("_", text)[:_NAME].split("/")
    return "/".join("_" if part in ("", ".", "..") else part for part in parts)


def _parts(values: list[_T], most: int) -> Iterator[list[_T]]:
    for begin in range(0, len(values), most):
        yield values[begin : begin + most]
