"""Names from users and strangers never lead out of the folder of runs."""

import os
from pathlib import Path

import pytest

from ganlab.errors import RunError
from ganlab.runs import create_run, find_runs, new_run_path

FILES = ["...gin", "..gin", ".gin", ".hidden.gin", "a\nb.gin", "a\x1b[2J.gin", "\u202ex.gin", os.fsdecode(b"\xff.gin")]


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
