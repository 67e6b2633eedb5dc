"""Lengths of time on the command line."""

from __future__ import annotations

import math
from typing import Any

import click

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Duration(click.ParamType):
    """A time above 0, in seconds or with a unit: `90`, `90s`, `30m`, `1.5h`, `2d`. Converted to seconds, a float."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Converts the text to seconds."""
        text = str(value).strip().lower()
        unit = _SECONDS.get(text[-1:])
        try:
            seconds = float(text[:-1] if unit else text) * (unit or 1.0)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds < math.inf:
            self.fail(f"{value!r} is not a time above 0. Write for example 90s, 30m, 2h or 1d.", param, ctx)
        return seconds
