"""The package of each kind, as generated: installed, tested and trained with, in an environment of its own."""

import json
import os
import subprocess
import sys
import sysconfig

import pytest

from ganlab.authoring import TEMPLATES, new_plugin

# Every kind takes processes of its own; the first is always looked at.
KINDS = [kind if kind == "constraint" else pytest.param(kind, marks=pytest.mark.slow) for kind in TEMPLATES]


@pytest.fixture
def environment(tmp_path):
    """Runs a command in a new virtual environment, which sees what is installed in this one."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    here = sysconfig.get_path("purelib")
    (tmp_path / site / "_this.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("GANLAB_", "PYTHON", "PYTEST_"))}

    def run(*arguments):
        done = subprocess.run(
            [python, *map(str, arguments)],
            cwd=tmp_path,
            env={**variables, "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run.python = python
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_it_installs_passes_its_tests_and_trains(environment, tmp_path, kind):
    made = new_plugin("ganlab-soft-slope", kind, tmp_path)
    # Without a network: hatchling is here, as a part of the extra `test`.
    pip = [sys.executable, "-m", "pip", "--python", environment.python, "install", "--quiet", "-e", made.folder]
    subprocess.run([*pip, "--no-build-isolation", "--no-deps", "--disable-pip-version-check"], check=True)
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
