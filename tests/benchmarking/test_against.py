"""Reference results: which may stand beside a benchmark, and which files are refused."""

import json
import os

import pytest
from ganlab_benchmark.against import held_against, read_reference, reference_files
from small_suites import results

from ganlab.errors import ConfigError


def test_other_versions_are_named(tmp_path):
    other = results(versions={"ganlab": "0.1.0", "python": "3.12.1", "tensorflow": "2.20.0", "keras": "3.9"})
    (warning,) = held_against(results(), other, tmp_path / "other.json")["warnings"]
    assert "keras 3.9 instead of missing, tensorflow 2.20.0 instead of 2.21.0." in warning
    assert "ganlab" not in warning


@pytest.mark.parametrize(("field", "value"), [("suite", {"hash": "ffff"}), ("budget", {})])
def test_another_suite_or_budget_is_refused(tmp_path, field, value):
    with pytest.raises(ConfigError, match=rf"was made with another {field}.*--against none"):
        held_against(results(), results(**{field: value}), tmp_path / "other.json")


def _spoiled(change):
    found = results()
    change(found)
    return json.dumps(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        json.dumps(results(format=2)),
        json.dumps(results(constraints=[])),
        json.dumps(results(suite={})),
        json.dumps(results(versions={"ganlab": 3})),
        json.dumps(results(constraints={"a": {}})),
        _spoiled(lambda found: found["constraints"]["flat"]["tasks"]["w1"].update(status="perfect")),
        _spoiled(lambda found: found["constraints"]["flat"]["tasks"]["w1"]["figures"]["cosine"].update(mean="1")),
        _spoiled(lambda found: found["constraints"]["flat"]["tasks"]["w1"]["figures"]["cosine"].update(low=None)),
        _spoiled(lambda found: found["constraints"]["flat"]["tasks"]["w1"]["figures"]["cosine"].update(mean=1e999)),
        _spoiled(lambda found: found["constraints"]["flat"].update(settings={"w1": 3})),
    ],
)
def test_a_file_that_is_not_results_is_refused(tmp_path, text):
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(ConfigError, match=r"--against .*other\.json"):
        read_reference(tmp_path / "other.json")


def test_none_excludes_every_reference(tmp_path):
    assert reference_files(["none"], "quick") == []
    assert reference_files([], "no such suite") == []
    with pytest.raises(ConfigError, match="excludes other files"):
        reference_files(["none", "a.json"], "quick")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_reference(tmp_path / "gone.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(ConfigError, match="is a pipe"):
        read_reference(tmp_path / "pipe.json")
