"""Metric records and the writers that put them where people look.

`ganlab.telemetry.tensorboard` and `ganlab.telemetry.pictures` are imported by name, as they need heavier packages.
"""

from ganlab.telemetry.console import Console
from ganlab.telemetry.jsonl import JsonLinesWriter, read_metrics
from ganlab.telemetry.multi import MultiWriter
from ganlab.telemetry.records import Record, Writer

__all__ = ["Console", "JsonLinesWriter", "MultiWriter", "Record", "Writer", "read_metrics"]
