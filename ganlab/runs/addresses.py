"""Runs at addresses such as `s3://bucket/runs`, which plugins open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from ganlab.plugins import manager as plugins
from ganlab.support.paths import is_url

Opened = AbstractContextManager[tuple[Path, Callable[[Path, bool], None]]]


def at_address(path: object, use: str) -> Opened | None:
    """The context manager of the plugin that knows an address, as the hook `ganlab_open_runs` says.

    Args:
        path: The address; a path, or an address that no plugin knows, gives None.
        use: "list", "read", "resume" or "create".
    """
    if isinstance(path, str) and is_url(path):
        for _, call in plugins.current().calls("ganlab_open_runs"):
            if (opened := call(address=path, use=use)) is not None:
                return opened
    return None
