"""Runs at addresses: mirrored while they train, read through a cache, shipped as models. Does not import fsspec."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import ganlab

__all__ = ["ganlab_open_runs"]


@ganlab.hookimpl
def ganlab_open_runs(
    address: str, use: str
) -> AbstractContextManager[tuple[Path, Callable[[Path, bool], None]]] | None:
    """Opens any address that fsspec knows."""
    from ganlab_remote import opening
    from ganlab_remote.addresses import is_known

    return opening.opened(address, use) if is_known(address) else None
