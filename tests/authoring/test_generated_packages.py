"""The generated package of each kind: installed, tested and used in training, in its own environment."""

import json

import pytest

from ganlab.scaffold import OTHERS, TEMPLATES, new_plugin

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", TEMPLATES)
def test_generated_package_installs_passes_its_tests_and_trains(environment, tmp_path, kind):
    made = new_plugin("ganlab-soft-slope", kind, tmp_path)
    environment.install(made.folder)
    listed = json.loads(environment("-m", "ganlab", "plugins", "--json"))
    (component,) = [c for c in listed["components"] if c["plugin"] == "ganlab_soft_slope"]
    assert (component["kind"], component["name"]) == (TEMPLATES[kind], "soft_slope")
    assert (component["distribution"], component["status"]) == ("ganlab-soft-slope", "loaded")
    tested = environment("-m", "pytest", "-q", "-p", "no:cacheprovider", made.folder)
    summary = tested.strip().splitlines()[-1]
    assert " passed" in summary
    assert "failed" not in summary
    trained = environment("-m", "ganlab", "run", "--gin", made.experiment, "--name", "first")
    assert "Completed at step 200 of 200" in trained
    run = json.loads((tmp_path / "runs" / "soft_slope" / "first" / "run.json").read_text())
    assert run["provenance"]["plugins"]["ganlab_soft_slope"]["version"] == "0.1.0"
    assert made.selector in (tmp_path / "runs" / "soft_slope" / "first" / "operative.gin").read_text()


@pytest.mark.parametrize("kind", [*TEMPLATES, *OTHERS])
def test_generated_package_passes_plugins_check(environment, tmp_path, kind):
    made = new_plugin("ganlab-soft-slope", kind, tmp_path)
    environment.install(made.folder)
    if kind in OTHERS:
        assert " passed" in environment("-m", "pytest", "-q", "-p", "no:cacheprovider", made.folder)
    report = json.loads(environment("-m", "ganlab", "plugins", "check", "ganlab_soft_slope", "--json"))
    assert report["passed"]
    assert [row["status"] for row in report["components"]] == ["passed"]
