"""Safe names and lines from any text, and files that are opened only inside their folder."""

import os
import socket
import unicodedata

import pytest

from ganlab.errors import RunError
from ganlab.support.paths import LONGEST_BYTES, as_name, is_name, open_inside, read_inside, walk
from ganlab.support.strict_json import parse_json
from ganlab.support.terminal import line, lines

STRANGE = [
    "",
    ".",
    "..",
    "...",
    ".hidden",
    "..hidden",
    "/",
    "//",
    "/etc/passwd",
    "../../x",
    "a/../../b",
    "a\0b",
    "a\nb",
    "a\rb",
    "a\x1b[2Jb",
    "a\x9bb",
    "\u202egnp",
    "\u2066x\u2069",
    "a\u2028b",
    "\ud800",
    os.fsdecode(b"a\xff"),
    "\ufeff",
    "x" * 10_000,
    "é" * 500,
    "\U0001f600" * 100,
]


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
def test_any_text_gives_a_valid_name(tmp_path, text):
    name = as_name(text)
    assert is_name(name)
    assert as_name(name) == name
    assert name.isprintable()
    assert not name.startswith(".")
    assert "/" not in name
    assert 0 < len(name.encode()) <= LONGEST_BYTES
    (tmp_path / name).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_different_texts_give_different_names():
    assert len({as_name(text) for text in STRANGE}) == len(STRANGE)
    assert len({as_name(text) for text in ("a/b", "a-b", "a\0b", "a\nb", "../a-b", "./a-b")}) == 6


@pytest.mark.parametrize("text", ["a", "baseline-2", "gradient_penalty.weight=10 s0", "Größe", "a~b", "-x", "x."])
def test_valid_name_is_unchanged(text):
    assert as_name(text) == text


def test_every_character_is_safe_on_a_terminal():
    for code in range(0x110000):
        char = chr(code)
        shown = line(f"a{char}b")
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            assert char not in shown, hex(code)
            assert shown.startswith("a\\")
        elif char != "\\":
            assert shown in (f"a{char}b", f"a{char!r}b".replace("'", "")), hex(code)


def test_line_and_lines_escape_control_characters():
    assert line("a\nb\r\n\tc") == r"a\nb\r\n\tc"
    assert lines("a\nb\x1b\n") == "a\nb\\x1b\n"
    assert line(7) == "7"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("secret")
    (tmp_path / "run" / "below").mkdir(parents=True)
    (tmp_path / "run" / "file").write_text("text")
    (tmp_path / "run" / "below" / "file").write_text("deep")
    (tmp_path / "latest").symlink_to("run")
    return tmp_path / "run"


def test_files_are_read_through_links_within_the_folder(run):
    (run / "link").symlink_to("below/file")
    (run / "there").symlink_to("below")
    for folder in (run, run.parent / "latest"):
        read = {name: read_inside(folder, name, most=10) for name in ("file", "below/file", "link", "there/file")}
        assert read == {"file": b"text", "below/file": b"deep", "link": b"deep", "there/file": b"deep"}
    with pytest.raises(RunError, match="is larger than 0 MiB"):
        read_inside(run, "file", most=3)


def leads_out(run):
    yield "link", lambda: (run / "link").symlink_to("../elsewhere/secret")
    yield "absolute", lambda: (run / "absolute").symlink_to(run.parent / "elsewhere" / "secret")
    yield "there/secret", lambda: (run / "there").symlink_to("../elsewhere")
    yield "below/link", lambda: (run / "below" / "link").symlink_to("../../elsewhere/secret")
    yield "again", lambda: ((run / "again").symlink_to("there2"), (run / "there2").symlink_to("../elsewhere/secret"))
    yield "zero", lambda: (run / "zero").symlink_to("/dev/zero")
    yield "nowhere", lambda: (run / "nowhere").symlink_to("../not-there")
    yield "circle", lambda: (run / "circle").symlink_to("circle")
    yield "../elsewhere/secret", lambda: None
    yield "/etc/passwd", lambda: None
    yield "a\0b", lambda: None


def test_nothing_outside_the_folder_is_opened(run):
    for name, make in leads_out(run):
        make()
        with pytest.raises(RunError, match=r"out of the folder .*\. That is data"):
            open_inside(run, name)


def test_pipes_sockets_and_folders_are_refused_without_waiting(run, monkeypatch):
    os.mkfifo(run / "pipe")
    (run / "link").symlink_to("pipe")
    monkeypatch.chdir(run)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    for name, kind in (("pipe", "a pipe"), ("link", "a pipe"), ("socket", "a socket")):
        with pytest.raises(RunError, match=f"{name} is {kind}, not a regular file"):
            open_inside(run, name)
    with pytest.raises(IsADirectoryError):
        open_inside(run, "below")
    with pytest.raises(FileNotFoundError) as found:
        open_inside(run, "nothing")
    assert found.value.filename == str(run / "nothing")


def test_link_swapped_in_during_opening_is_not_followed(run, monkeypatch):
    real = os.stat

    def swapped(path, **how):
        found = real(path, **how)
        if path == "file":
            (run / "file").unlink()
            (run / "file").symlink_to("../elsewhere/secret")
        return found

    monkeypatch.setattr("ganlab.support.paths.os.stat", swapped)
    with pytest.raises(RunError, match="out of the folder"):
        open_inside(run, "file")


def test_walk_handles_any_depth_and_does_not_follow_links(tmp_path):
    at = tmp_path
    for _ in range(300):
        at /= "d"
    at.mkdir(parents=True)
    (tmp_path / "up").symlink_to("..")
    found = list(walk(tmp_path))
    assert len(found) == 301
    assert found[0] == (str(tmp_path), ["d"], ["up"])
    assert next(walk(tmp_path / "not there"), None) is None


@pytest.mark.parametrize("text", ["", "nan?", "{", '{"a":' * 900 + "1" + "}" * 900, "[" * 100_000, "9" * 5000, b"\xff"])
def test_invalid_or_excessive_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"Expecting|deeply|digits|decode|codec"):
        parse_json(text)


def test_json_round_trips_and_huge_numbers_are_infinite():
    value = {"a": [1, -2.5, "x\ud800", None, True, {"b": 10**299}]}
    import json

    assert parse_json(json.dumps(value)) == value
    assert parse_json("9" * 4000) == float("inf")
    assert parse_json("-" + "9" * 4000) == float("-inf")
