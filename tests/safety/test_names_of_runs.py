"""Names from users and strangers never lead out of the folder of runs."""

import os
from pathlib import Path

import pytest
from ganlab_tensorboard.logfolder import LogFolder
from ganlab_tensorboard.run_names import run_names

from ganlab.errors import RunError
from ganlab.runs import create_run, find_runs, new_run_path

FILES = ["...gin", "..gin", ".gin", ".hidden.gin", "a\nb.gin", "a\x1b[2J.gin", "\u202ex.gin", os.fsdecode(b"\xff.gin")]
TEXTS = ["../../x", "/etc/x", "..", ".", "", "\0", "a\nb", "\ud800", "\u202ex", "x" * 5000, ".hidden", "\x1b[2J"]


@pytest.mark.parametrize("name", [*FILES, "x" * 240 + ".gin"], ids=ascii)
def test_experiment_file_of_any_name_has_a_listed_run(tmp_path, name):
    path = new_run_path(tmp_path / "runs", Path(name).stem, 0)
    assert path.parents[1] == tmp_path / "runs"
    assert path.resolve().is_relative_to(tmp_path / "runs")
    assert path.parent.name.isprintable()
    create_run(path, config="", operative="", info={})
    assert list(find_runs(tmp_path / "runs")) == [path]


def test_experiment_files_of_different_names_have_different_folders(tmp_path):
    assert len({new_run_path(tmp_path, Path(name).stem, 0).parent for name in FILES}) == len(FILES)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "../x", "a/b", "/x", "a\0b", "a\nb", "\ud800", "\u202ex", "x" * 61]
)
def test_invalid_run_names_are_refused(tmp_path, name):
    with pytest.raises(RunError, match="Invalid run name"):
        new_run_path(tmp_path, "stem", 0, name)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: ascii(text)[:20])
@pytest.mark.parametrize("field", ["experiment.seed", "dataset", "constraints", "name"])
def test_hostile_settings_give_one_safe_link_for_tensorboard(tmp_path, text, field):
    runs = tmp_path / "runs" / "digits"
    settings = {"dataset": "digits", "experiment.seed": 0}
    strange = {**settings, text: text} if field == "name" else {**settings, field: text}
    first, second = runs / "20260801-120000-s0-aaaa", runs / "20260801-130000-s0-bbbb"
    create_run(first, config="", operative="", info={"settings": settings})
    create_run(second, config="", operative="", info={"settings": {}})
    names = run_names({first: settings, second: strange})
    assert len(set(names.values())) == 2
    for name in names.values():
        assert name
        assert name.isprintable()
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name.encode()) < 255
    folder = LogFolder(lambda: find_runs(runs))
    folder._settings = {first: settings, second: strange}
    folder.refresh()
    assert {path.resolve() for path in folder.path.iterdir()} == {first, second}
    folder.close()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_symlink()) == []
