"""Histograms as TensorBoard's own reader returns them."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

from ganlab.telemetry import Console, JsonLinesWriter, MultiWriter
from ganlab.telemetry.tensorboard_writer import TensorBoardWriter


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0}).Reload()
    assert events.SummaryMetadata("weights/kernel").plugin_data.plugin_name == "histograms"
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in events.Tensors("weights/kernel")]


def test_values_are_counted_into_bins_of_equal_width(tmp_path):
    # 51 values one apart from 0 to 50 on fifty bins: one in each, the last takes its upper edge too.
    values = np.arange(51, dtype=np.float32).reshape(3, 17)
    writer = MultiWriter([TensorBoardWriter(tmp_path), JsonLinesWriter(tmp_path / "m.jsonl"), Console(quiet=True)])
    writer.histogram(5, "weights/kernel", values)
    writer.close()
    ((step, bins),) = read(tmp_path)
    assert step == 5
    np.testing.assert_allclose(bins[:, 0], np.arange(50), atol=1e-9)
    np.testing.assert_allclose(bins[:, 1], np.arange(1, 51), atol=1e-9)
    assert bins[:, 2].tolist() == [1.0] * 49 + [2.0]
    assert (tmp_path / "m.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("values", "counted"), [([np.nan, 1.0, np.inf, 2.0, -np.inf], 2), ([3.0, 3.0], 2), ([np.nan], 0), ([], 0)]
)
def test_non_finite_values_are_left_out(values, counted, tmp_path):
    writer = TensorBoardWriter(tmp_path)
    writer.histogram(1, "weights/kernel", np.asarray(values, np.float32))
    writer.close()
    ((_, bins),) = read(tmp_path)
    assert np.isfinite(bins).all()
    assert bins[:, 2].sum() == counted
