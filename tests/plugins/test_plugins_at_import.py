"""Plugins that print, hang or are interrupted while they are imported."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from ganlab import importing, plugins

GANLAB = [sys.executable, "-m", "ganlab"]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Writes a plugin of one file and leaves it to the tests to load it; there are no others."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    path = tmp_path / "ganlab_plugins.py"

    def write(text):
        path.write_text(text)
        return path

    return write


def test_what_a_plugin_prints_is_not_the_commands_output(plugin, tmp_path):
    path = plugin(
        "import os, sys\nfrom ganlab import hookimpl\nprint('from Python')\nos.system('echo from a child')\n"
        "os.write(1, b'from the bare file\\n')\n"
        "@hookimpl\ndef ganlab_losses():\n    print('from a hook')\n    return {}\n"
    )
    command = [*GANLAB, "plugins", "--json", "--plugin-file", path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"name": "ganlab_plugins", "status": "loaded"}.items() <= json.loads(done.stdout)["plugins"][-1].items()
    for said in ("from Python", "from a child", "from the bare file", "from a hook"):
        assert said in done.stderr


def test_standard_output_is_itself_again_afterwards(plugin, capfd):
    path = plugin("raise ValueError('no')")
    (row,) = plugins.discover(local=path).rows
    assert row.status == "broken"
    print("to standard output", flush=True)
    os.write(1, b"and below it\n")
    assert capfd.readouterr().out == "to standard output\nand below it\n"


def test_a_plugin_that_hangs_is_named(plugin, monkeypatch, capsys):
    monkeypatch.setattr(importing, "_SLOW_SECONDS", 0.05)
    path = plugin("import time; time.sleep(0.5)")
    plugins.discover(local=path)
    assert capsys.readouterr().err == (
        f"Still importing the plugin 'ganlab_plugins' of {path} after 0.05 s; Ctrl-C stops, "
        "'--no-plugin ganlab_plugins' leaves it out.\n"
    )


def test_a_quick_plugin_is_not_mentioned(plugin, monkeypatch, capsys):
    monkeypatch.setattr(importing, "_SLOW_SECONDS", 0.05)
    plugins.discover(local=plugin("x = 1"))
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_plugin_that_hangs_can_be_interrupted(plugin, tmp_path):
    path = plugin("import pathlib, time\npathlib.Path('begun').touch()\ntime.sleep(60)\n")
    command = [*GANLAB, "plugins", "--plugin-file", path]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    for _ in range(300):
        if (tmp_path / "begun").exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"Interrupted while importing the plugin 'ganlab_plugins' of {path}" in said
    assert "Traceback" not in said
