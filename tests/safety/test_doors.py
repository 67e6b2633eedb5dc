"""Finds code that reads a run's files, names files after data, or prints untrusted text without the safe functions."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "ganlab"
APPLICATIONS = ROOT.parent / "plugins"
# Everything except the kit that authors test their plugins with.
FILES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "testing"}
FILES |= {
    str(path.relative_to(APPLICATIONS)): path
    for path in sorted(APPLICATIONS.rglob("*.py"))
    if path.relative_to(APPLICATIONS).parts[0] != "ganlab_builtin" and path.parent.name != "testing"
}

READING = {"open", "read_text", "read_bytes", "os.open", "io.open", "np.load", "numpy.load", "np.fromfile", "json.load"}
READING |= {"os.walk", "os.fwalk", "rglob", "shutil.copy", "shutil.copyfile", "shutil.copytree", "file_digest"}
LINKING = {"symlink_to", "hardlink_to", "os.symlink", "os.link"}
PRINTING = {"click.echo", "click.secho", "click.confirm", "click.prompt"}
PRINTING |= {"print", "sys.stdout.write", "sys.stderr.write"}
SHOWING = {"add_row", "add_column"}

# The safe functions themselves, and code that neither reads nor prints anything of untrusted runs.
ALLOWED = {
    "support/paths.py": {"os.open"},
    "cli/messages.py": {"click.echo", "click.confirm"},
    # Files and folders are opened only to lock or sync them, or to return to them.
    "runs/lock.py": {"os.open", "read_text"},  # /proc/PID/stat
    "support/locking.py": {"os.open"},
    "support/durable.py": {"os.open"},
    "lazy.py": {"os.open"},
    # The user's own folder of compiled programs, whose files are checked before TensorFlow sees them, by links.
    "support/program_store.py": {"os.link", "os.open"},
    "support/xla_cache.py": {"read_text"},  # /proc/cpuinfo and /proc/driver/nvidia/version
    "training/beside.py": {"os.open"},  # /dev/null
    # A folder made by ganlab, with links under safe names.
    "ganlab_tensorboard/logfolder.py": {"symlink_to"},
    # Archives, which are unpacked into a hidden folder and checked there.
    "ganlab_archive/unpacking.py": {"os.open"},
    "ganlab_devices/probe.py": {"open"},  # /proc/driver/nvidia/version
    # A device or a pipe that a user writes to.
    "support/atomic.py": {"os.open"},
    # Reads from files that the safe functions have opened, or from bytes.
    "training/checkpoints.py": {"np.load", "file_digest"},
    "ganlab_certify/sample_files.py": {"open"},  # of a member of an archive
    "ganlab_compare/samples.py": {"open"},
    # Holds a run's files, none of them a link, in a folder beside it.
    "ganlab_remote/snapshots.py": {"os.link", "shutil.copyfile"},
    # Copies an event file after the whole folder of the run has been checked.
    "telemetry/event_cutting.py": {"shutil.copyfile"},
    # Experiment files outside runs, and the sources of plugins.
    "config/files.py": {"rglob"},
    "ganlab_verify/verifying.py": {"rglob"},
    "config/serializer.py": {"read_text"},  # a function of that name, which parses text
    "plugins/validation.py": {"read_bytes"},
    "runs/plugin_file.py": {"read_text"},
    "runs/environment.py": {"open", "read_bytes", "rglob"},
    "runs/modules.py": {"read_bytes", "rglob"},
    "cli/command_sources.py": {"read_bytes"},
    # Templates and styles that ganlab ships.
    "ganlab_scaffold/packages.py": {"read_text"},
    "ganlab_compare/pages.py": {"read_text"},
    "ganlab_export/readme.py": {"read_text"},
    "ganlab_passport/passport.py": {"read_text"},
    "ganlab_benchmark/report.py": {"read_text"},
    "ganlab_tensorboard/plugin.py": {"read_bytes"},
    # Output of ganlab's own processes.
    "ganlab_verify/process.py": {"json.load", "read_text"},
    "ganlab_passport/program.py": {"open"},
    "ganlab_verify/resume.py": {"read_bytes"},
    "ganlab_verify/tpu/checking.py": {"read_text"},
    "ganlab_verify/tpu/compiling.py": {"json.load", "read_bytes"},
    # Other functions of these names: for a browser, for the log of a run, and `runs.info.read_text`, which is safe.
    "ganlab_tensorboard/command.py": {"open"},
    "training/session.py": {"open"},
    "runs/directory.py": {"read_text"},
    # JSON for ganlab itself, the standard streams, a script for the shell, and ganlab's own sentences.
    "ganlab_benchmark/child.py": {"sys.stdout.write"},
    "cli/process.py": {"open", "os.open", "print"},
    "cli/completion.py": {"click.echo"},
    "plugins/import_guard.py": {"print"},
    "support/with_parent.py": {"print"},
    "ganlab_verify/tpu/environment.py": {"print"},
    # The printed text has passed `lines` or `line`.
    "telemetry/console.py": {"print"},
    "ganlab_sweep/screen.py": {"print"},
    # Headings and cells with ganlab's own words, or text that has passed `line`.
    "ganlab_runs/list_command.py": {"add_column"},
    "ganlab_plan/command.py": {"add_column"},
    "ganlab_verify/command.py": {"add_column", "add_row"},
    "ganlab_compare/table.py": {"add_column", "add_row"},
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


def test_modules_use_the_safe_functions():
    found = {name: what for name, path in FILES.items() if (what := set(calls(path.read_text())))}
    assert found == ALLOWED, (
        "files of a run are opened by ganlab.support.paths, names are made by as_name, and what is printed passes "
        "through ganlab.cli.messages.say, ganlab.cli.tables.cell or ganlab.support.terminal"
    )


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
