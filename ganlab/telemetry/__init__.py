"""Metric records and the writers that store and show them.

`ganlab.telemetry.tensorboard_writer` and `ganlab.telemetry.plots` are imported by name, as they need heavier packages.
"""

from ganlab.interfaces.record import Record, Writer
from ganlab.telemetry.console import Console
from ganlab.telemetry.fan_out import MultiWriter
from ganlab.telemetry.jsonl import JsonLinesWriter, read_metrics, to_json
from ganlab.telemetry.jsonl_lines import MOST_DAMAGED, NOT_METRICS, Line, lines_of, rows_of, tags_in, too_damaged

__all__ = [
    "MOST_DAMAGED",
    "NOT_METRICS",
    "Console",
    "JsonLinesWriter",
    "Line",
    "MultiWriter",
    "Record",
    "Writer",
    "lines_of",
    "read_metrics",
    "rows_of",
    "tags_in",
    "to_json",
    "too_damaged",
]
