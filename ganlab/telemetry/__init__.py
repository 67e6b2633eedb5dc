"""Metric records and the writers that store and show them.

`ganlab.telemetry.tensorboard_writer` and `ganlab.telemetry.plots` are imported by name, as they need heavier packages.
"""

from ganlab.interfaces.record import Record, Writer
from ganlab.telemetry.console import Console
from ganlab.telemetry.fan_out import MultiWriter
from ganlab.telemetry.jsonl import JsonLinesWriter, read_metrics, to_json

__all__ = ["Console", "JsonLinesWriter", "MultiWriter", "Record", "Writer", "read_metrics", "to_json"]
