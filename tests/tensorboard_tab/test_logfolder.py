"""The folder that TensorBoard reads follows the runs that exist."""

from __future__ import annotations

import shutil

from ganlab_tensorboard.logfolder import LogFolder

from ganlab.runs import create_run, find_runs


def make(folder, name, constraint):
    path = folder / "digits" / f"20260801-{name}"
    create_run(path, config="", operative="", info={"settings": {"constraints": constraint, "experiment.seed": 0}})
    return path


def links(folder):
    return {path.name: path.resolve() for path in folder.path.iterdir()}


def test_runs_come_go_and_keep_their_names(tmp_path):
    runs = tmp_path / "runs"
    first = make(runs, "120000-s0-aaaa", "r1")
    folder = LogFolder(lambda: find_runs(runs))
    folder.refresh()
    assert links(folder) == {"digits s0": first}
    second = make(runs, "130000-s0-bbbb", "dragan")
    folder.refresh()
    folder.refresh()
    assert links(folder) == {"digits s0": first, "dragan s0": second}
    # New events of a run, and files that it begins later, appear at once.
    (second / "events.out.tfevents.2").write_text("more")
    assert (folder.path / "dragan s0" / "events.out.tfevents.2").read_text() == "more"
    shutil.rmtree(first)
    folder.refresh()
    assert links(folder) == {"dragan s0": second}
    folder.close()
    assert not folder.path.exists()
    assert (second / "events.out.tfevents.2").read_text() == "more"


def test_run_with_a_damaged_or_older_file_is_still_shown(tmp_path):
    for name, text in (("120000-s0-aaaa", "{"), ("130000-s1-bbbb", '{"status": "completed"}')):
        path = tmp_path / "digits" / f"20260801-{name}"
        path.mkdir(parents=True)
        (path / "run.json").write_text(text)
    make(tmp_path, "140000-s2-cccc", "r1")
    folder = LogFolder(lambda: find_runs(tmp_path))
    folder.refresh()
    # The third's seed is 0 by its settings.
    assert set(links(folder)) == {"digits s0 aaaa", "digits s1", "digits s0 cccc"}
    folder.close()
