"""Where the TPU compiler is looked for, and the reason given if it is not available."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ganlab_verify.tpu import check, environment

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_index(monkeypatch):
    """A pip that finds nothing anywhere."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_the_extra_pins_what_the_command_installs():
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert tuple(extras["tpu-check"]) == environment.PINS


@pytest.mark.slow
def test_without_the_compiler_the_check_is_not_run_and_gives_the_reason(source, cache, no_index):
    row = check(source())
    assert (row.check, row.status, row.figure) == ("tpu", "not run", None)
    assert "No matching distribution found for jax==0.10.2" in row.detail
    assert list(cache.iterdir()) == []  # nothing half-made


def test_a_cache_that_cannot_be_written_is_a_reason_too(source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path / "file"))
    row = check(source())
    assert row.status == "not run"
    assert "GANLAB_CACHE" in row.detail


def test_nothing_is_installed_unless_requested(source, cache, monkeypatch):
    monkeypatch.setattr(environment, "run_process", lambda *args, **options: pytest.fail("a process was started"))
    row = check(source(), install=False)
    assert (row.status, row.figure) == ("skipped", None)
    for part in ("jax==0.10.2", "600 MB", f"ganlab verify --gin {source().gin_files[0]} --checks tpu --install"):
        assert part in row.detail
    assert not cache.exists()


def test_an_installed_compiler_is_used_without_a_request(cache, monkeypatch):
    assert not environment.installed()
    python = cache / f"tpu-check-{environment._digest()}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert environment.installed()
    assert environment.compiler_python()[0] == str(python)


def test_an_environment_is_made_once(cache, monkeypatch, capsys):
    ran = []

    def run(command, **options):
        ran.append(command)
        if "venv" in command:
            (Path(command[-1]) / "bin").mkdir()
            (Path(command[-1]) / "bin" / "python").write_text("")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environment, "run_process", run)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    python, variables = environment.compiler_python()
    assert environment.compiler_python() == (python, variables)
    assert len(ran) == 2
    assert ran[1][-3:] == list(environment.PINS)
    (folder,) = cache.iterdir()
    assert Path(python) == folder / "bin" / "python"
    assert "PYTHONPATH" not in variables
    assert "once" in capsys.readouterr().err


def test_an_installed_extra_is_used(cache, monkeypatch):
    pins = dict(pin.split("==") for pin in environment.PINS)
    monkeypatch.setattr("importlib.metadata.version", lambda name: pins[name])
    assert environment.compiler_python()[0] == sys.executable
    assert not cache.exists()


def test_another_version_of_the_extra_is_not_used(cache, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9.9")
    assert not environment.installed()
    made = []
    monkeypatch.setattr(environment, "_make", made.append)
    python, _ = environment.compiler_python()
    (folder,) = made
    assert Path(python) == folder / "bin" / "python"


def test_the_cache_folder_is_the_users(monkeypatch):
    monkeypatch.delenv("GANLAB_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert environment.cache_folder() == Path("/caches/ganlab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert environment.cache_folder() == Path("/somewhere/.cache/ganlab")


def test_the_check_imports_no_tensorflow():
    code = "import sys, ganlab_verify.tpu; print({'tensorflow', 'keras', 'jax'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
