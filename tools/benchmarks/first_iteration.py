"""A plugin that notes when a run's first metrics are written, and ends it there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import ganlab


@ganlab.hookimpl
def ganlab_metrics(run: Any, records: Any) -> None:
    """Records the time."""
    Path(os.environ["GANLAB_BENCH_NOTE"]).write_text(str(time.time()))
    os._exit(0)
