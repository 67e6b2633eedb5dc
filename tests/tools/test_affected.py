"""Which long tests a change needs, as `.ci/run` asks."""

import collections
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("tests/*/test_*.py"))


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import affected

    return affected


@pytest.fixture
def repository(tool, tmp_path, monkeypatch):
    """The tool's source tree, a repository with a commit on main; called with names, it commits files."""
    monkeypatch.setattr(tool, "ROOT", tmp_path)

    def git(*words):
        who = ["-c", "user.name=Anybody", "-c", "user.email=anybody@example.org"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    def commit(*names):
        for name in names:
            (tmp_path / name).write_text(name)
        git("add", ".")
        git("commit", "-m", "A change")

    git("init", "-b", "main")
    commit("first")
    commit.git = git
    return commit


def test_on_a_branch_everything_since_main_has_changed(tool, repository, tmp_path):
    repository.git("checkout", "-b", "topic")
    repository("second")
    repository("third")
    (tmp_path / "untracked").touch()
    (tmp_path / "first").unlink()
    assert tool.changes() == ["first", "second", "third", "untracked"]


def test_on_main_the_last_commit_has_changed(tool, repository):
    repository("second")
    repository("third")
    assert tool.changes() == ["third"]


def test_without_an_earlier_commit_the_change_is_unknown(tool, repository, monkeypatch):
    assert tool.changes() == []
    monkeypatch.setenv("PATH", "")
    assert tool.changes() == []


# A changed file, a folder with tests near it, and one without.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "near", "not_near"),
    [
        ("plugins/ganlab_sweep/store.py", "sweeps", "layers"),
        ("plugins/ganlab_builtin/launchers/forking.py", "launchers", "layers"),
        ("ganlab/training/checkpoints.py", "training", "datasets"),
        ("docs/exporting.md", "exporting", "training"),
        ("tests/fidelity/records/any.json", "fidelity", "training"),
        ("tests/training/small.py", "training", "telemetry"),
        ("tests/comparing/synthetic.py", "comparing", "layers"),
        ("tools/chaos.py", "reliability", "layers"),
    ],
)
def test_tests_near_a_change_import_it_name_it_or_mirror_it(tool, path, near, not_near):
    folders = {file.split("/")[1] for file in tool.affected([path], FILES)[0]}
    assert near in folders
    assert not_near not in folders


@pytest.mark.slow
def test_a_component_is_near_the_tests_that_name_it_or_an_experiment_file_with_it(tool):
    words = {file: re.findall(r"\w+", (ROOT / file).read_text()) for file in FILES}
    near, _ = tool.affected(["plugins/ganlab_builtin/constraints/gradient_penalty.py"], FILES)
    assert {file for file in FILES if {"gradient_penalty", "quickstart"} & set(words[file])} <= set(near)
    near, _ = tool.affected(["plugins/ganlab_builtin/constraints/parseval.py"], FILES)
    assert len(near) < len(FILES) / 4


@pytest.mark.parametrize("path", ["ganlab/support/atomic.py", "tests/conftest.py", "pyproject.toml"])
def test_settings_and_what_training_imports_are_within_reach_of_every_test(tool, path):
    near, within = tool.affected([path], FILES)
    assert sorted({**near, **within}) == FILES


def test_what_training_does_not_import_is_not_within_reach_of_every_test(tool):
    near, within = tool.affected(["plugins/ganlab_compare/ranking.py"], FILES)
    folders = {file.split("/")[1] for file in {**near, **within}}
    assert {"comparing", "browser"} <= folders
    assert not {"layers", "lipschitz"} & folders


def test_all_run_that_fit(tool):
    seconds = {"near": tool.LIMIT / 2, "within": tool.LIMIT / 2, "other": tool.LIMIT}
    assert tool.choose(["near"], ["within"], seconds) == (["near", "within"], False)


def test_near_ones_run_beside_a_part_of_the_others_where_not_all_fit(tool):
    seconds = {f"near {number}": tool.LIMIT / 8 for number in range(10)} | {"within": tool.LIMIT}
    chosen, others = tool.choose(list(seconds)[:10], ["within"], seconds)
    took = sum(seconds[file] for file in chosen)
    assert others
    assert tool.LIMIT * 7 / 8 < took + (sum(seconds.values()) - took) / tool.PARTS <= tool.LIMIT


def test_a_part_runs_where_the_change_is_unknown(tool):
    assert tool.choose([], [], {"other": 1.0}) == ([], True)


def test_commands_name_the_chosen_files_and_leave_them_out_of_the_part(tool):
    counts = {"conformance": collections.Counter(c=7), "slow": collections.Counter(a=2, b=9)}
    conformance, slow = tool.MARKERS.values()
    assert tool.commands(["a"], "2", counts) == [
        f"-m '{conformance}' --splits 6 --group 2",
        f"-m '{slow}' a",
        f"-m '{slow}' --splits 6 --group 2 --ignore=a",
    ]
    assert tool.commands([], "all", counts)[6:] == [f"-m '{slow}' --splits 6 --group {n}" for n in range(1, 7)]
    assert tool.commands(["c"], None, counts) == [f"-m '{conformance}' c"]
