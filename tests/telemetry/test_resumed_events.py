"""Each of TensorBoard's readers shows a resumed run as one that never stopped."""

import pytest
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, plugin_event_accumulator, plugin_event_multiplexer
from tensorboard.data import server_ingester
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.util import grpc_util

from ganlab.telemetry import Record, event_cutting
from ganlab.telemetry.tensorboard_writer import TensorBoardWriter

MOST = {"scalars": 1000, "text": 1000}


def multiplexer(folder, purge):
    runs = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance=MOST, purge_orphaned_data=purge)
    runs.AddRunsFromDirectory(str(folder)).Reload()
    return data_provider.MultiplexerDataProvider(runs, str(folder))


def data_server(folder):
    try:
        binary = server_ingester.get_server_binary()
    except server_ingester.NoDataServerError:
        pytest.skip("this build of TensorBoard has no data server")
    ingester = server_ingester.SubprocessServerDataIngester(
        server_binary=binary,
        logdir=str(folder),
        reload_interval=60,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
        samples_per_plugin=MOST,
    )
    ingester.start()
    return ingester.data_provider


READERS = {
    "default": data_server,
    "without the data server": lambda folder: multiplexer(folder, True),
    "--purge_orphaned_data=false": lambda folder: multiplexer(folder, False),
}


def shown(folder, reader):
    """Scalars, the steps of texts, and the settings and the end in HParams, of each run."""
    asked = {"experiment_id": "", "downsample": 1000}
    provider, session = READERS[reader](folder), context.RequestContext()
    scalars = provider.read_scalars(session, plugin_name="scalars", **asked)
    texts = provider.read_tensors(session, plugin_name="text", **asked)
    hparams = provider.list_tensors(session, plugin_name="hparams", experiment_id="")
    content = {run: {tag: series.plugin_content for tag, series in tags.items()} for run, tags in hparams.items()}
    ends = {run: tags.get(hparams_metadata.SESSION_END_INFO_TAG) for run, tags in content.items()}
    return {
        run: (
            {tag: [(point.step, point.value) for point in points] for tag, points in tags.items()},
            {tag: [point.step for point in points] for tag, points in texts[run].items()},
            hparams_metadata.parse_session_start_info_plugin_data(
                content[run][hparams_metadata.SESSION_START_INFO_TAG]
            ).hparams["weight"],
            ends[run] and hparams_metadata.parse_session_end_info_plugin_data(ends[run]).status,
        )
        for run, tags in scalars.items()
    }


def write(folder, steps, weight, end, *, purge_step=0, evaluate=True):
    writer = TensorBoardWriter(folder, purge_step=purge_step)
    writer.hparams({"weight": weight})
    for step in steps:
        writer.scalars([Record(step, "critic/loss", weight + step, (1.0, 2.0 + step))])
        if evaluate:
            writer.scalars([Record(step, "evaluation/modes", float(step))])
            writer.text(step, "health", "Nothing found.")
    writer.session_end(end)
    writer.close()


@pytest.mark.parametrize("reader", READERS)
def test_resumed_run_is_shown_as_one_that_never_stopped(tmp_path, reader):
    write(tmp_path / "whole" / "run", range(2, 11, 2), 1.0, "completed")
    write(tmp_path / "resumed" / "run", range(2, 9, 2), 1.0, "failed")
    event_cutting.cut(tmp_path / "resumed" / "run", after=5, without=[hparams_metadata.SESSION_START_INFO_TAG])
    write(tmp_path / "resumed" / "run", range(6, 11, 2), 1.0, "completed", purge_step=6)
    assert shown(tmp_path / "resumed", reader) == shown(tmp_path / "whole", reader)


@pytest.mark.parametrize("reader", READERS)
def test_changed_run_shows_its_new_settings_and_no_figure_that_it_lost(tmp_path, reader):
    write(tmp_path / "run", range(2, 9, 2), 1.0, "failed")
    event_cutting.cut(tmp_path / "run", after=5, without=[hparams_metadata.SESSION_START_INFO_TAG])
    write(tmp_path / "run", range(6, 11, 2), 3.0, "completed", purge_step=6, evaluate=False)
    scalars, texts, weight, end = shown(tmp_path, reader)["run"]
    assert scalars["critic/loss"] == [(2, 3.0), (4, 5.0), (6, 9.0), (8, 11.0), (10, 13.0)]
    assert scalars["evaluation/modes"] == [(2, 2.0), (4, 4.0)]
    assert (texts, weight.number_value, end) == ({"health": [2, 4]}, 3.0, 1)  # STATUS_SUCCESS


def test_open_tensorboard_forgets_the_steps_that_are_written_again(tmp_path):
    write(tmp_path, range(2, 9, 2), 1.0, "failed")
    opened = plugin_event_accumulator.EventAccumulator(str(tmp_path)).Reload()
    write(tmp_path, [6], 10.0, "completed", purge_step=5)
    assert [event.step for event in opened.Reload().Tensors("critic/loss")] == [2, 4, 6]
