"""Metric records and the writers that put them where people look."""

from ganlab.telemetry.records import Record, Writer

__all__ = ["Record", "Writer"]
