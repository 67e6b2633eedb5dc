"""Plugins that print, hang or are interrupted while they are imported."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from ganlab.plugins import import_guard
from ganlab.plugins import manager as plugins

GANLAB = [sys.executable, "-m", "ganlab"]


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Writes a single-file plugin, the only one, for the tests to load."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    path = tmp_path / "ganlab_plugins.py"

    def write(text):
        path.write_text(text)
        return path

    return write


def test_output_of_a_plugin_goes_to_stderr(plugin, tmp_path):
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


def test_stdout_is_restored_after_import(plugin, capfd):
    path = plugin("raise ValueError('no')")
    (row,) = plugins.discover(local=path).rows
    assert row.status == "broken"
    print("to standard output", flush=True)
    os.write(1, b"and below it\n")
    assert capfd.readouterr().out == "to standard output\nand below it\n"


def test_hanging_plugin_is_named(plugin, monkeypatch, capsys):
    monkeypatch.setattr(import_guard, "_SLOW_SECONDS", 0.05)
    path = plugin("import time; time.sleep(0.5)")
    plugins.discover(local=path)
    assert capsys.readouterr().err == (
        f"Still importing the plugin 'ganlab_plugins' of {path} after 0.05 s; Ctrl-C stops, "
        "'--no-plugin ganlab_plugins' leaves it out.\n"
    )


def test_quick_plugin_is_not_mentioned(plugin, monkeypatch, capsys):
    monkeypatch.setattr(import_guard, "_SLOW_SECONDS", 0.05)
    plugins.discover(local=plugin("x = 1"))
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_hanging_plugin_can_be_interrupted(plugin, tmp_path):
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


GREETING = "I0000 00:00:1795786596.920083    5001 cpu_feature_guard.cc:227] This TensorFlow binary is optimized"


@pytest.fixture
def greeting_tensorflow(tmp_path):
    """The environment of a process with a fake TensorFlow that prints a message on import, as the real one does."""
    folder = tmp_path / "site" / "tensorflow"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        f"import os\nos.write(2, b'{GREETING}\\nmine\\n')\nlevel = os.environ['TF_CPP_MIN_LOG_LEVEL']\n"
        "if 'BREAK' in os.environ:\n    raise ImportError('no libcuda')\n"
    )
    others = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return {**others, "PYTHONPATH": str(folder.parent)}


TOP = (
    "import os, sys\nimport tensorflow as tf\nfrom ganlab import hookimpl\nos.write(2, b'a library of mine\\n')\n"
    "assert tf.level == '3', tf.level\nassert type(tf.__loader__).__name__ == 'SourceFileLoader', tf.__loader__\n"
    "@hookimpl\ndef ganlab_losses():\n    return {}\n"
)


def test_tensorflow_import_in_a_plugin_is_silent(plugin, tmp_path, greeting_tensorflow):
    command = [*GANLAB, "plugins", "--json", "--plugin-file", plugin(TOP)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=greeting_tensorflow)
    assert json.loads(done.stdout)["plugins"][-1]["status"] == "loaded", done.stdout
    assert GREETING not in done.stderr
    assert "a library of mine" in done.stderr  # nothing else is withheld


@pytest.mark.parametrize(("level", "heard"), [(None, 0), ("3", 0), ("0", 1), ("2", 1)])
def test_tensorflow_import_by_a_script_is_silent_and_leaves_the_users_level(greeting_tensorflow, level, heard):
    script = "import os, ganlab.lazy\nprint(ganlab.lazy.tensorflow.level, os.environ.get('TF_CPP_MIN_LOG_LEVEL'))"
    given = greeting_tensorflow | ({"TF_CPP_MIN_LOG_LEVEL": level} if level else {})
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=given)
    assert (done.stdout, done.stderr.count(GREETING)) == (f"{level or 3} {level}\n", heard)
    assert "mine" in done.stderr  # what TensorFlow's libraries do not log


def test_failing_tensorflow_import_prints_its_messages(plugin, tmp_path, greeting_tensorflow):
    command = [*GANLAB, "plugins", "--json", "--plugin-file", plugin(TOP)]
    broken = {**greeting_tensorflow, "BREAK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=broken)
    row = json.loads(done.stdout)["plugins"][-1]
    assert (row["status"], row["message"]) == ("broken", "ImportError: no libcuda")
    assert GREETING in done.stderr


def test_reason_of_a_broken_plugin_is_complete_within_bounds(plugin):
    said = "\n".join(f"reason {i}" for i in range(1000))
    (row,) = plugins.discover(local=plugin("raise ValueError('one\\ntwo\\n  three')")).rows
    assert row.reason == "ValueError: one\ntwo\n  three"
    (row,) = plugins.discover(local=plugin(f"raise ValueError({said!r})")).rows
    lines = row.reason.splitlines()
    assert lines[:2] == ["ValueError: reason 0", "reason 1"]
    assert lines[-1] == "[... 981 more lines ...]"
    (row,) = plugins.discover(local=plugin("raise ValueError('x' * 100_000)")).rows
    assert len(row.reason) < 2100
    assert row.reason.endswith("more letters ...]")


def test_a_plugin_is_imported_where_no_thread_can_be_started(plugin, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(import_guard.threading.Thread, "start", refused)
    (row,) = plugins.discover(local=plugin("x = 1")).rows
    assert row.status == "loaded"


def test_a_plugin_that_imports_tensorflow_at_its_top_is_named_with_what_it_costs(plugin, tmp_path):
    text = "import ganlab\n{}\n@ganlab.hookimpl\ndef ganlab_losses():\n    return {{}}\n"
    code = (
        "from pathlib import Path\nfrom ganlab.plugins import manager\nfrom ganlab.cli.doctor import plugin_findings\n"
        "manager.use(manager.discover(local=Path('ganlab_plugins.py')))\n"
        "print(*(f'{one.subject}: {one.detail}' for one in plugin_findings() if one.state == 'note'), sep='\\n')"
    )
    # In the place of the real one, which takes ten times as long on some machines as on others.
    (tmp_path / "tensorflow.py").write_text("import time; time.sleep(0.3)")

    def said():
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path).stdout

    plugin(text.format("import tensorflow as tf"))
    assert re.fullmatch(
        r"plugin ganlab_plugins: imports TensorFlow at the top of a module, which costs every command 0\.\d s, --help "
        r"too\. Write: from ganlab\.lazy import tensorflow as tf\n",
        said(),
    )
    plugin(text.format("from ganlab.lazy import tensorflow as tf"))
    assert said() == "\n"
