"""Finds code that reads a run's files, names files after data, or prints untrusted text without the safe functions."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "ganlab"
# Everything except the kit that authors test their plugins with.
FILES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "testing"}

READING = {"open", "read_text", "read_bytes", "os.open", "io.open", "np.load", "numpy.load", "np.fromfile", "json.load"}
READING |= {"os.walk", "os.fwalk", "rglob", "shutil.copy", "shutil.copyfile", "shutil.copytree", "file_digest"}
LINKING = {"symlink_to", "hardlink_to", "os.symlink", "os.link"}
PRINTING = {
    "click.echo",
    "click.secho",
    "click.confirm",
    "click.prompt",
    "print",
    "sys.stdout.write",
    "sys.stderr.write",
}
SHOWING = {"add_row", "add_column"}

# The doors themselves, and what reads and prints nothing of runs that others made.
ALLOWED = {
    "paths.py": {"os.open"},
    "cli/messages.py": {"click.echo", "click.confirm"},
    # Folders are locked, and synced after they were written to.
    "runs/lock.py": {"os.open", "read_text"},  # /proc/PID/stat
    "sweeps/store.py": {"os.open"},
    "telemetry/durable.py": {"os.open"},
    # A folder of ganlab's own, of links under names that are safe.
    "telemetry/logfolder.py": {"symlink_to"},
    # Archives, which are unpacked beside their place and checked there.
    "runs/unpacking.py": {"open", "os.open", "os.walk"},
    # Of files that the doors have opened, or of bytes.
    "training/checkpoints.py": {"np.load", "file_digest"},
    "comparing/samples.py": {"open"},
    "telemetry/mending.py": {"open"},
    # A copy of an event file, after all of the run's folder was looked through.
    "telemetry/events.py": {"shutil.copyfile"},
    # Experiment files that are in no run, and what plugins and datasets are made of.
    "config/sources.py": {"open"},
    "config/files.py": {"rglob"},
    "config/writing.py": {"read_text"},  # a function of that name, of text
    "contract.py": {"read_bytes"},
    "fingerprints.py": {"open"},
    "runs/environment.py": {"open", "read_bytes", "rglob"},
    "runs/modules.py": {"read_bytes", "rglob"},
    "cli/plugin_help.py": {"os.open", "read_text"},
    # Templates and styles that ganlab ships.
    "authoring/packages.py": {"read_text"},
    "comparing/report.py": {"read_text"},
    # Processes of ganlab's own, and what they leave.
    "verification/process.py": {"json.load", "read_text"},
    "verification/resume.py": {"read_bytes"},
    "verification/tpu/checking.py": {"read_text"},
    "verification/tpu/compiling.py": {"json.load", "read_bytes"},
    # What is called so and opens no file: a browser, a journal.
    "cli/tensorboard.py": {"open"},
    "training/session.py": {"open"},
    # The standard streams, a script for the shell, and sentences of ganlab's own.
    "cli/process.py": {"open", "os.open", "print"},
    "cli/completion.py": {"click.echo"},
    "importing.py": {"print"},
    "verification/tpu/environment.py": {"print"},
    # Which pass `lines` on the way, or `line`.
    "telemetry/console.py": {"print"},
    "sweeps/screen.py": {"print"},
    # Headings and cells that are ganlab's own words, or have passed `line` where they were made.
    "cli/runs_list.py": {"add_column"},
    "cli/verify.py": {"add_column", "add_row"},
    "comparing/table.py": {"add_column", "add_row"},
}


def calls(source):
    """Yields a module's calls that only the safe functions should make, as written, without the object of a method."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else called
        names = READING | LINKING | PRINTING | SHOWING
        found = called if called in names else method if method in names - PRINTING else None
        if found == "open" and writes(node, called):
            continue
        if found is not None and not (found in SHOWING and all(map(is_escaped, node.args))):
            yield found


def writes(node, called):
    """Whether a file is opened for writing or appending, which is safe: the program made the file."""
    place = 1 if called == "open" else 0
    mode = node.args[place] if len(node.args) > place else None
    mode = next((word.value for word in node.keywords if word.arg == "mode"), mode)
    return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and mode.value[:1] in "wxa"


def is_escaped(argument):
    """Whether a cell is a constant, or passes through `cell` or `line`."""
    return isinstance(argument, ast.Constant) or any(
        isinstance(part, (ast.Name, ast.Attribute)) and ast.unparse(part) in ("cell", "line")
        for part in ast.walk(argument)
    )


@pytest.mark.parametrize("name", FILES)
def test_module_uses_the_safe_functions(name):
    found = set(calls(FILES[name].read_text()))
    assert found <= ALLOWED.get(name, set()), (
        f"ganlab/{name}: files of a run are opened by ganlab.support.paths, names are made by as_name, and what is "
        "printed passes through ganlab.cli.messages.say, ganlab.cli.tables.cell or ganlab.support.terminal"
    )


def test_allowed_calls_are_all_in_use():
    found = {name: set(calls(path.read_text())) for name, path in FILES.items()}
    assert {
        name: what - found.get(name, set()) for name, what in ALLOWED.items() if what - found.get(name, set())
    } == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("(run / 'run.json').read_text()", ["read_text"]),
        ("path.read_bytes()", ["read_bytes"]),
        ("with path.open('rb') as file: pass", ["open"]),
        ("path.open()", ["open"]),
        ("open(path)", ["open"]),
        ("open(path, 'r+b')", ["open"]),
        ("os.open(path, os.O_RDONLY)", ["os.open"]),
        ("os.walk(run)", ["os.walk"]),
        ("(folder / name).symlink_to(run)", ["symlink_to"]),
        ("click.echo(run.path)", ["click.echo"]),
        ("print(name)", ["print"]),
        ("table.add_row(name, Text(x))", ["add_row"]),
        ("path.open('wb'); open(path, mode='x'); path.open('ab', buffering=0)", []),
        ("table.add_row(cell(name), 'mean'); table.add_row(*map(cell, row))", []),
        ("open_inside(run, 'x'); say(line(run.path))", []),
    ],
)
def test_unsafe_calls_are_detected(source, found):
    assert list(calls(source)) == found
