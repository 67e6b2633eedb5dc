"""TensorBoard event files: curves of every replica, pictures, texts, a charts layout and hyperparameters.

The records are TensorBoard's own protocol buffers. `tf.summary` is not used: inside `strategy.run` it writes only the
first replica, and it costs one operation per value.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.custom_scalar import metadata as layout_metadata
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.util import tensor_util

from ganlab.interfaces.record import Record, Writer
from ganlab.telemetry.event_file import EventFile
from ganlab.telemetry.layout import layout

_BINS = 50

# Records of a run as a whole; TensorBoard keeps the first of each that it reads.
START_TAG, LAYOUT_TAG = hparams_metadata.SESSION_START_INFO_TAG, layout_metadata.CONFIG_SUMMARY_TAG
OF_THE_RUN = (START_TAG, LAYOUT_TAG)

# Channels of a PNG by the colour type in its header: grey, RGB, palette, grey and alpha, RGB and alpha.
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


class TensorBoardWriter(Writer):
    """Writes event files. A step's metrics are one event: `critic/loss`, and `replica/<i>/critic/loss` beside it."""

    def __init__(self, directory: Path, *, purge_step: int = 0) -> None:
        """Opens a new event file.

        Args:
            directory: The folder of the file, which is the run's directory.
            purge_step: The first step that a resumed run writes again: a TensorBoard that is open forgets what it has
                read of this step and later ones. 0 for a new run, whose start it must have seen for that.
        """
        self._file = EventFile(directory)
        start = SessionLog(status=SessionLog.START)
        self._file.add(Event(step=purge_step, wall_time=time.time(), session_log=start))

    def scalars(self, records: Sequence[Record]) -> None:
        """Takes the metrics of one step."""
        if not records:
            return
        event = Event(step=records[0].step, wall_time=time.time())
        add = event.summary.value.add
        for record in records:
            add(tag=record.tag, simple_value=record.reduced)
            for index, value in enumerate(record.replicas):
                add(tag=f"replica/{index}/{record.tag}", simple_value=value)
        self._file.add(event)

    def image(self, step: int, tag: str, png: bytes) -> None:
        """Takes one picture, an encoded PNG.

        Raises:
            ValueError: It is not a PNG.
        """
        height, width, channels = png_size(png)
        image = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png)
        self._add(step, Summary.Value(tag=tag, image=image))

    def histogram(self, step: int, tag: str, values: np.ndarray) -> None:
        """Takes an array of any shape, whose finite values are counted into bins of equal width."""
        flat = np.asarray(values, np.float64).ravel()
        counts, edges = np.histogram(flat[np.isfinite(flat)], bins=_BINS)
        metadata = histogram_metadata.create_summary_metadata(display_name=None, description=None)
        bins = tensor_util.make_tensor_proto(np.stack([edges[:-1], edges[1:], counts], axis=1))
        self._add(step, Summary.Value(tag=tag, metadata=metadata, tensor=bins))

    def text(self, step: int, tag: str, markdown: str) -> None:
        """Takes one text, in Markdown."""
        metadata = text_metadata.create_summary_metadata(display_name=None, description=None)
        self._add(step, Summary.Value(tag=tag, metadata=metadata, tensor=_string(markdown.encode())))

    def layout(self, tags: Iterable[str], figures: Iterable[str] = ()) -> None:
        """Takes the tags of a run's metrics, for the charts of the Custom Scalars tab.

        Args:
            tags: Metrics that every replica has a value of, as in records, without `replica/<i>/`.
            figures: Tags of the run as a whole.
        """
        value = Summary.Value(
            tag=layout_metadata.CONFIG_SUMMARY_TAG,
            metadata=layout_metadata.create_summary_metadata(),
            tensor=_string(layout(tags, figures).SerializeToString()),
        )
        self._add(0, value)

    def hparams(self, values: Mapping[str, bool | int | float | str | None]) -> None:
        """Takes the run's hyperparameters, and begins its row in the HParams table.

        There is no experiment record on purpose: TensorBoard uses the first one it reads, and then hides every
        hyperparameter that this one run does not have. Without such a record it collects the columns from all runs.
        There is no group either, whose mean TensorBoard would show: each run is a row, named as in the other tabs.

        Args:
            values: Hyperparameters by name. None and non-finite numbers are left out: they cannot be written as
                numbers, and one written as text would turn its column into text for all runs.

        Raises:
            TypeError: A value has another type.
        """
        start = plugin_data_pb2.SessionStartInfo(start_time_secs=time.time())
        for name, value in sorted(values.items()):
            if value is None or (isinstance(value, float) and not math.isfinite(value)):
                continue
            if isinstance(value, bool):
                start.hparams[name].bool_value = value
            elif isinstance(value, (int, float)):
                start.hparams[name].number_value = value
            elif isinstance(value, str):
                start.hparams[name].string_value = value
            else:
                raise TypeError(f"hyperparameter {name} = {value!r} is of type {type(value).__name__}")
        data = plugin_data_pb2.HParamsPluginData(session_start_info=start)
        self._add_hparams(hparams_metadata.SESSION_START_INFO_TAG, data)

    def session_end(self, status: Literal["completed", "interrupted", "failed", "diverged"]) -> None:
        """Ends the run's row in the HParams table.

        An interrupted run stays open: TensorBoard keeps the first end that it reads, and a resumed run writes another.

        Args:
            status: How the run ended, as in run.json.
        """
        if status == "interrupted":
            return
        ended = api_pb2.STATUS_SUCCESS if status == "completed" else api_pb2.STATUS_FAILURE
        end = plugin_data_pb2.SessionEndInfo(status=ended, end_time_secs=time.time())
        data = plugin_data_pb2.HParamsPluginData(session_end_info=end)
        self._add_hparams(hparams_metadata.SESSION_END_INFO_TAG, data)

    def flush(self) -> None:
        """Waits until everything taken so far is on disk."""
        self._file.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._file.close()

    def _add(self, step: int, value: Any) -> None:
        self._file.add(Event(step=step, wall_time=time.time(), summary=Summary(value=[value])))

    def _add_hparams(self, tag: str, data: Any) -> None:
        metadata = hparams_metadata.create_summary_metadata(data)
        self._add(0, Summary.Value(tag=tag, metadata=metadata, tensor=hparams_metadata.NULL_TENSOR))


def png_size(png: bytes) -> tuple[int, int, int]:
    """Height, width and channels of an encoded PNG, from its header.

    Raises:
        ValueError: It is not a PNG.
    """
    if len(png) < 26 or png[:8] != b"\x89PNG\r\n\x1a\n" or png[12:16] != b"IHDR" or png[25] not in _PNG_CHANNELS:
        raise ValueError(f"the picture starts with {png[:8]!r}, which is not a PNG; encode it as one")
    width, height = struct.unpack(">II", png[16:24])
    return height, width, _PNG_CHANNELS[png[25]]


def _string(data: bytes) -> Any:
    return tensor_util.make_tensor_proto(data)
