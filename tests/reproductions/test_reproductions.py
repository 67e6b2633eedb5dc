"""The command, and the smallest reproductions, whose claims hold."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import reproduce
from reproductions import wgan_gp_fig1_gradients as gradients
from reproductions import wgan_gp_fig1_weights as weights

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(ROOT / "tools" / "reproduce.py")]
NAMES = reproduce.NAMES


def test_every_module_is_in_the_list():
    modules = {path.stem for path in (ROOT / "tools" / "reproductions").glob("*.py") if "SIZES" in path.read_text()}
    assert set(NAMES) == modules - {"__init__"}
    done = subprocess.run([*COMMAND, "--list"], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(NAMES)
    assert all(len(line.split()) > 5 for line in done.stdout.splitlines())


@pytest.mark.slow
def test_gradients_vanish_and_explode_under_clipping_alone(cpus, tmp_path):
    report = gradients.reproduce(gradients.Size(width=128, batch=32, steps=150, seeds=1))
    assert [claim.statement for claim in report.claims if not claim.holds] == []
    assert len(report.claims) == 7
    assert report.pictures["gradients"].startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_command_writes_its_files(monkeypatch, tmp_path, capsys, cpus):
    monkeypatch.setitem(weights.SIZES, "quick", weights.Size(width=16, updates=20, penalty_rate=5e-4))
    # Twenty updates move no weight to the limits: that claim fails, and so does the command.
    assert reproduce.main(["wgan_gp_fig1_weights", "-o", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "quick: width 16, updates 20, penalty rate 0.0005" in printed
    assert "**no**" in printed
    found = json.loads((tmp_path / "claims.json").read_text())
    assert found["command"] == "python tools/reproduce.py wgan_gp_fig1_weights --quick"
    assert found["size"] == {"name": "quick", "width": 16, "updates": 20, "penalty_rate": 5e-4}
    assert not found["passed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["claims.json", "table.md", "weights.png"]


@pytest.mark.slow
def test_the_claims_of_a_reproduction_hold_at_a_smaller_size(monkeypatch, tmp_path, cpus):
    # Half the units and three eighths of the updates of the quick size, whose claims docs/results has.
    monkeypatch.setitem(weights.SIZES, "quick", weights.Size(width=128, updates=1500, penalty_rate=5e-4))
    assert reproduce.main(["wgan_gp_fig1_weights", "-o", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "claims.json").read_text())
    assert found["passed"]
    assert [claim["holds"] for claim in found["claims"]] == [True] * 3


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_stored_results(name):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## `{name}`\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    kept = ROOT / "docs" / "results" / name
    facts = json.loads((kept / "claims.json").read_text())
    assert facts["passed"]
    assert facts["command"] in section
    assert facts["commit"][:7] in section
    assert f"{facts['seconds']} s" in section
    assert f"All {len(facts['claims'])} claims hold: the [table](results/{name}/table.md)" in section
    assert (kept / "table.md").is_file()
    pictures = sorted(path.name for path in kept.glob("*.png"))
    assert pictures
    assert all(f"results/{name}/{picture}" in section for picture in pictures)
