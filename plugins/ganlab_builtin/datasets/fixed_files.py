"""Files that must stay as they are while a dataset reads them, and the rows of a `.npy` file among them."""

from __future__ import annotations

import os
import time
import weakref
from pathlib import Path

import numpy as np

import ganlab
from ganlab_builtin.datasets.checks import refusal

_KEPT = 1 << 26  # bytes of an array that is kept in memory, from where rows are taken faster
_TICK_NS = 20_000_000  # two changes within a tick of a file system's clock, 4 ms as a rule, have one time


def stamp(file: int | Path) -> tuple[int, int]:
    """The size and the time of the last change of a file, given by path or descriptor."""
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


def changed(dataset: str, path: str) -> ganlab.ConfigError:
    """The error for a file that has been written since the dataset was made."""
    return refusal(
        dataset,
        "path",
        path,
        "has been written since it was opened, so its examples are no longer those that training began with. Start "
        "again; to replace data in use, save under another name and rename that.",
    )


class NpyRows:
    """The rows of an array in a `.npy` file, which are read when asked for if they are more than 64 MiB.

    A memory map would end the process by SIGBUS when somebody truncates the file, as `numpy.save` does. The file stays
    open, so that one that is removed or replaced by another is still read.
    """

    def __init__(self, dataset: str, file: Path, path: str) -> None:
        """Reads the header.

        Args:
            dataset: Whose file it is, for messages.
            file: The file.
            path: Its name in the experiment.

        Raises:
            ValueError: It is not such a file, or holds Python objects.
            OSError: It cannot be read.
        """
        self._dataset, self._path = dataset, path
        mapped = np.load(file, mmap_mode="r", allow_pickle=False)
        self.shape, self.dtype, self.ndim, self.nbytes = mapped.shape, mapped.dtype, mapped.ndim, mapped.nbytes
        self._descriptor = os.open(file, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        self._stamp, self._begins = stamp(self._descriptor), mapped.offset
        if time.time_ns() - self._stamp[1] < _TICK_NS:
            time.sleep(_TICK_NS / 1e9)
        self._rows: np.ndarray | None = None
        if self.nbytes <= _KEPT or not mapped.flags.c_contiguous:  # in Fortran's order a row is not in one place
            rows = self._read([0], self.nbytes).view(self.dtype)
            self._rows = rows.reshape(self.shape, order="C" if mapped.flags.c_contiguous else "F")

    def __len__(self) -> int:
        """The number of rows."""
        return int(self.shape[0])

    def __getitem__(self, wanted: np.ndarray | slice) -> np.ndarray:
        """The rows with these numbers.

        Raises:
            ConfigError: The file has been written since it was opened.
        """
        if self._rows is not None:
            rows = self._rows[wanted]
        else:
            width = self.nbytes // len(self)
            if isinstance(wanted, slice):
                start, stop, _ = wanted.indices(len(self))
                data = self._read([start * width], (stop - start) * width)
            else:
                data = self._read([number * width for number in wanted.tolist()], width)
            rows = data.view(self.dtype).reshape(-1, *self.shape[1:])
        if stamp(self._descriptor) != self._stamp:
            raise changed(self._dataset, self._path)
        return rows

    def _read(self, starts: list[int], count: int) -> np.ndarray:
        """As many bytes of the array from each of these on."""
        data = np.empty(len(starts) * count, np.uint8)
        view, read = data.data, os.preadv
        for place, start in enumerate(starts):
            at, end, offset = place * count, (place + 1) * count, self._begins + start
            while at < end:
                if not (came := read(self._descriptor, [view[at:end]], offset)):
                    raise changed(self._dataset, self._path)
                at, offset = at + came, offset + came
        return data
