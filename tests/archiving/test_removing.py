"""Runs are removed completely, and nothing else is."""

import os
import shutil

import pytest
from ganlab_archive.removing import removable, remove, weight
from resting_runs import contents, make

from ganlab.errors import RunError
from ganlab.runs import find_runs
from ganlab.runs.lock import locked


def removed(*paths, keep_metrics=False):
    with removable(paths) as runs:
        sizes = [weight(run, keep_metrics=keep_metrics) for run in runs]
        for run in runs:
            remove(run, keep_metrics=keep_metrics)
    return sizes


def test_remove_deletes_the_run_and_nothing_else(tmp_path):
    one, two = make(tmp_path / "one").path, make(tmp_path / "two").path
    before = contents(two)
    size = sum(map(len, contents(one).values()))
    assert removed(one, tmp_path / "." / "one") == [size]
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    assert contents(two) == before


def test_keep_metrics_removes_only_checkpoints_and_samples(tmp_path):
    one = make(tmp_path / "one").path
    (one / "diagnostics").mkdir()
    (one / "diagnostics" / "x.png").write_text("")
    before = contents(one)
    assert removed(one, keep_metrics=True) == [1010]  # 998 and 2 of the checkpoint, 10 of the image
    heavy = {name for name in before if name.startswith(("checkpoints/", "samples/"))}
    assert len(heavy) == 3
    assert contents(one) == {name: text for name, text in before.items() if name not in heavy}
    assert sorted(path.name for path in one.iterdir() if path.is_dir()) == ["diagnostics"]
    assert removed(one, keep_metrics=True) == [0]


@pytest.mark.parametrize("keep_metrics", [True, False])
def test_remove_does_not_follow_links(tmp_path, keep_metrics):
    one = make(tmp_path / "one").path
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_text("x")
    shutil.rmtree(one / "checkpoints")
    (one / "checkpoints").symlink_to(other)
    (one / "samples" / "more").symlink_to(other)
    removed(one, keep_metrics=keep_metrics)
    assert not os.path.lexists(one / "checkpoints")
    assert contents(other) == {"precious": b"x"}
    assert one.exists() == keep_metrics


def test_one_invalid_run_prevents_all_removals(tmp_path):
    one, two = make(tmp_path / "one"), make(tmp_path / "two").path
    (tmp_path / "link").symlink_to(two)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "run.json").write_text("{}")
    make(tmp_path / "outer")
    make(tmp_path / "outer" / "runs" / "inner")
    before = contents(tmp_path)
    for name, message in (
        ("on", "Run .*on not found: .*Did you mean 'one'"),
        (".", "is not a run but contains"),
        ("link", f"is a link to {two}"),
        ("package", r"was not made by ganlab: its run\.json has no status"),
        ("outer", "contains another run, .*outer/runs/inner"),
    ):
        with pytest.raises(RunError, match=message):
            removed(two, tmp_path / name)
    with locked(one):
        held = contents(tmp_path)
        with pytest.raises(RunError, match=rf"one is being trained by process {os.getpid()} on "):
            removed(two, one.path)
        assert contents(tmp_path) == held
    assert set(contents(tmp_path)) == set(before)


def test_runs_can_be_removed_on_a_full_disk(tmp_path, monkeypatch):
    one = make(tmp_path / "one").path

    def full(self, *arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.open", full)
    monkeypatch.setattr("pathlib.Path.write_text", full)
    monkeypatch.setattr("ganlab.runs.directory.RunDirectory.info", {"status": "completed"})
    removed(one)
    assert list(tmp_path.iterdir()) == []


def test_partly_removed_run_is_not_listed(tmp_path, monkeypatch):
    one = make(tmp_path / "one").path

    def stopped(path):
        (path / "run.json").touch()
        raise OSError(1, "Operation not permitted", str(path / "config.gin"))

    monkeypatch.setattr("shutil.rmtree", stopped)
    with pytest.raises(RunError, match=r"config\.gin cannot be removed: Operation not permitted"):
        removed(one)
    assert list(find_runs(tmp_path)) == []
