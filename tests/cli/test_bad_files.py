"""Files that are not experiments: one line, exit code 2, and no new files."""

import os
import subprocess
import sys

import pytest


@pytest.fixture(autouse=True)
def nothing_shipped(monkeypatch):
    monkeypatch.setattr("ganlab.config.files.shipped_folder", lambda: None)


LARGE = (
    "exp.gin is larger than 1 MiB, but an experiment file has only a few lines of text. Is it another file? Long lists "
    "of values belong in files that a dataset reads."
)

NOT_TEXT = "is not text: is this an experiment file? Those are text in UTF-8."
DEEP = "exp.gin:1: brackets in more than 32 brackets. Write a flatter value."

BYTES = {
    "binary": (b"\x89PNG\r\n\x1a\n\0\0", f"exp.gin:1: the byte 0x89 {NOT_TEXT}"),
    "Latin-1": ("a = 1\n# größe\n".encode("latin-1"), "exp.gin:2: the byte 0xf6 is not UTF-8. Save the file as UTF-8."),
    "UTF-16": (b"\xff\xfe", "exp.gin:1: the file is UTF-16. Save it as UTF-8."),
    "a zero byte": (
        b"a = 1\nb\0 = 2\n",
        "exp.gin:2: a zero byte is not text: is this an experiment file? Remove it, or choose another file.",
    ),
    "large": (b"#" * (1 << 20) + b"\n", LARGE),
    "deep": (b"a = " + b"[" * 5000 + b"\n", DEEP),
    "deep but whole": (b"a = " + b"[" * 40 + b"]" * 40, DEEP),
    "a key": (b"a = {[1]: 2}\n", "exp.gin:1: a list or a dict cannot be a key of a dict. Write text or a number."),
    "no lines in a block": (b"experiment:\n", "exp.gin:2: the file ends too early: a block has no lines."),
}


@pytest.mark.parametrize(("data", "message"), BYTES.values(), ids=BYTES)
def test_invalid_file_contents_are_refused(mistake, here, data, message):
    (here / "exp.gin").write_bytes(data)
    assert mistake("run", "--gin", "exp.gin") == message


def test_path_that_is_not_a_regular_file_is_refused(mistake, here):
    (here / "folder.gin").mkdir()
    os.mkfifo(here / "pipe.gin")
    (here / "loop.gin").symlink_to("loop.gin")
    assert mistake("run", "--gin", "looped.gin") == "Gin file 'looped.gin' not found. Did you mean 'loop.gin'?"
    assert mistake("run", "--gin", "nowhere/exp.gin") == "Gin file 'nowhere/exp.gin' not found."
    assert mistake("run", "--gin", "folder.gin") == "folder.gin is a folder; give the gin file itself."
    assert mistake("run", "--gin", "pipe.gin") == "pipe.gin is not a regular file; give a gin file."
    assert mistake("run", "--gin", "loop.gin") == "loop.gin is a broken link; give a gin file."
    assert mistake("run", "--gin", "/dev/zero") == "/dev/zero is not a regular file; give a gin file."
    assert mistake("run", "--gin", "x" * 5000).startswith("Gin file 'xxx")
    assert mistake("run", "--gin", "a\nb") == r"Gin file 'a\nb' not found."


def test_endless_includes_are_refused(mistake, here):
    for number in range(40):
        (here / f"chain{number}.gin").write_text(f"include 'chain{number + 1}.gin'\n")
        (here / f"twice{number}.gin").write_text(f"include 'twice{number + 1}.gin'\n" * 2)
    (here / "twice20.gin").write_text("")
    assert mistake("run", "--gin", "chain0.gin") == (
        "chain32.gin:1: include 'chain33.gin' is more than 32 includes deep. Include it directly."
    )
    # Reading all of them would mean a million files.
    assert mistake("run", "--gin", "twice0.gin") == (
        "twice0.gin includes more than 256 files; a file that is included twice counts twice. Include each from one "
        "place."
    )


def test_exploding_macros_are_refused(mistake, here, minimal):
    # Expanding all of them would mean a billion values.
    doubling = "".join(f"m{i} = [%m{i + 1}, %m{i + 1}]\n" for i in range(30))
    (here / "exp.gin").write_text(f"{minimal}{doubling}m30 = 1\nexperiment.steps = %m0\n")
    assert mistake("run", "--gin", "exp.gin") == (
        "exp.gin:36: macros and components expand to more than 100000 values. Use them less often."
    )
    chain = "".join(f"m{i} = %m{i + 1}\n" for i in range(2000))
    (here / "exp.gin").write_text(f"{minimal}{chain}m2000 = 1\nexperiment.steps = %m0\n")
    assert mistake("run", "--gin", "exp.gin") == (
        "exp.gin:40: macros or components are nested more than 32 deep. Merge some."
    )


@pytest.mark.parametrize("key", ["%m", "@plain()"])
def test_invalid_dict_keys_are_refused(mistake, here, minimal, key):
    (here / "exp.gin").write_text(f"{minimal}m = [1]\nsmall.options = {{{key}: 1.0}}\n")
    message = mistake("run", "--gin", "exp.gin")
    assert message.startswith("exp.gin:8: ")
    assert message.endswith(" cannot be a key of a dict. Write text or a number.")


def test_long_values_do_not_fill_the_screen(mistake, here, minimal):
    (here / "exp.gin").write_text(f"{minimal}experiment.steps = {'9' * 5000}\n")
    message = mistake("run", "--gin", "exp.gin")
    assert len(message) < 1600
    assert message.startswith("exp.gin:7: experiment.steps = 999")
    assert "letters ...]" in message


def test_control_characters_are_escaped(mistake, here):
    (here / "a\x1b[2Jb.gin").write_text("x = = 1\n")
    assert mistake("run", "--gin", "a\x1b[2Jb.gin").startswith(r"a\x1b[2Jb.gin:1: this is not gin")


def test_byte_order_mark_and_foreign_line_ends_are_read(ganlab, here, minimal):
    (here / "exp.gin").write_bytes(b"\xef\xbb\xbf" + minimal.replace("\n", "\r\n").encode())
    result = ganlab("run", "--gin", "exp.gin", "--dry-run")
    assert result.exit_code == 0, result.output


def test_file_names_that_are_not_text_or_have_spaces(mistake, ganlab, here, minimal):
    folder = os.fsdecode(b"a b \xff")
    (here / folder).mkdir()
    (here / folder / os.fsdecode(b"e \xfe.gin")).write_text("include 'inner \\udcfe.gin'\n")
    (here / folder / os.fsdecode(b"inner \xfe.gin")).write_text(minimal)
    name = os.fsdecode(b"a b \xff/e \xfe.gin")
    assert ganlab("run", "--gin", name, "--dry-run", "--plugin-file", "ganlab_plugins.py").exit_code == 0
    (here / folder / os.fsdecode(b"inner \xfe.gin")).write_text("experiment.stepz = 2\n")
    assert mistake("run", "--gin", name, "--plugin-file", "ganlab_plugins.py") == (
        r"a b \udcff/inner \udcfe.gin:1: experiment has no parameter 'stepz'. Did you mean 'steps'?"
    )


REMEDY = "Choose another --runs."
NAME = "use at most 60 printable characters and no '/', for example 'baseline-2'."

PLACES = {
    ("--runs", "file"): "Invalid value for '--runs': Directory 'file' is a file.",
    ("--runs", "file/a"): f"The run's directory file/a/exp/RUN cannot be created: file is not a folder. {REMEDY}",
    (
        "--runs",
        "/proc/a",
    ): f"The run's directory /proc/a/exp/RUN cannot be created: No such file or directory. {REMEDY}",
    ("--runs", "taken"): f"The run's directory taken/exp/RUN cannot be created: taken/exp is not a folder. {REMEDY}",
    ("--runs", "a\udcff"): (
        r"'a\udcff/exp/RUN' is not valid UTF-8, and TensorFlow can only write to paths that are. Rename it, or choose "
        "another --runs."
    ),
    ("--name", "x" * 300): f"Invalid run name '{'x' * 59}: {NAME}",
    ("--name", "a\nb"): rf"Invalid run name 'a\nb': {NAME}",
    ("--name", "../x"): "Invalid run name '../x': " + NAME.replace("'/'", "'/' and no leading dot"),
    ("--name", ""): f"Invalid run name '': {NAME}",
    ("--name", "x "): "Invalid run name 'x ': " + NAME.replace("'/'", "'/' and no space at the start or end"),
    ("--name", "old"): (
        "A run 'old' already exists in runs/exp. Choose another name, or resume it: --resume runs/exp/old"
    ),
}


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry run"])
@pytest.mark.parametrize(("arguments", "message"), PLACES.items())
def test_invalid_run_folder_is_refused(mistake, here, minimal, monkeypatch, arguments, message, dry):
    (here / "exp.gin").write_text(minimal)
    (here / "file").write_text("")
    (here / "taken").mkdir()
    (here / "taken" / "exp").write_text("")
    (here / "runs" / "exp" / "old").mkdir(parents=True)
    monkeypatch.setattr("ganlab.cli.run.start_tensorflow", lambda: pytest.fail("TensorFlow was started"))
    monkeypatch.setattr("ganlab.runs.directory.secrets.token_hex", lambda count: "ffff")
    actual = mistake("run", "--gin", "exp.gin", *arguments, *dry)
    path = next((word for word in actual.replace("'", " ").split() if word.endswith("-s0-ffff")), "")
    assert actual.replace(path.rpartition("/")[2] or "-", "RUN", bool(path)) == message


def test_component_warning_is_printed_as_a_sentence():
    code = (
        "import warnings\nfrom ganlab.cli.messages import warn_plainly\nwarn_plainly()\n"
        "warnings.warn('3 files\\x1b are skipped')\nwarnings.warn('of code', FutureWarning)\n"
    )
    message = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    first, second, *_ = message.splitlines()
    assert first == r"Warning: 3 files\x1b are skipped"
    assert second == "<string>:5: FutureWarning: of code"


def test_file_names_that_are_not_text_are_printed_unchanged():
    code = "from ganlab.cli.messages import take_any_name\ntake_any_name()\nprint('a\\udcff \\u2026')\n"
    for encoding, expected in (("utf-8", b"a\xff \xe2\x80\xa6\n"), ("ascii", rb"a\udcff \u2026" + b"\n")):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment).stdout == expected
