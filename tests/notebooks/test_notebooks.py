"""The notebooks of docs/notebooks run from top to bottom and contain their outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path, kind):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def test_there_are_three_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["comparing", "first_gan", "own_constraint"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_a_title_and_saved_outputs(path):
    assert cells(path, "markdown")[0].startswith("# ")
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in code)
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch, cpus, capsys):
    import matplotlib

    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names = {"__name__": "__main__"}
    for number, source in enumerate(cells(path, "code")):
        exec(compile(source, f"{path.name}, cell {number}", "exec"), names)
    printed = capsys.readouterr().out
    if path.stem == "own_constraint":
        estimates = {name: run.info["metrics"]["critic/wasserstein"] for name, run in names["runs"].items()}
        assert abs(estimates["PairSlope"]) < 3 < abs(estimates["none"])  # the ring's radius is 1.4
    elif path.stem == "first_gan":
        assert "evaluation/mode_coverage/modes at step 1200: " in printed
        assert names["samples"].shape == (1000, 2)
    else:
        assert [one.label for one in names["comparison"].configurations] == ["gradient_penalty", "weight_clipping"]
