"""Metric records and the writers that store and show them.

`ganlab.telemetry.tensorboard_writer` and `ganlab.telemetry.plots` are imported by name, as they need heavier packages.
"""

from ganlab.interfaces.record import Record, Writer
from ganlab.telemetry.console import Console
from ganlab.telemetry.fan_out import MultiWriter
from ganlab.telemetry.following import MetricsFollower, last_row
from ganlab.telemetry.jsonl import JsonLinesWriter, logged_tags, read_metrics, to_json
from ganlab.telemetry.jsonl_lines import row_of, tags_in

__all__ = [
    "Console",
    "JsonLinesWriter",
    "MetricsFollower",
    "MultiWriter",
    "Record",
    "Writer",
    "last_row",
    "logged_tags",
    "read_metrics",
    "row_of",
    "tags_in",
    "to_json",
]
