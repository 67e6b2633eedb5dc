"""What `python tools/release.py` finds wrong; its whole is a slow test."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import release

ROOT = Path(__file__).resolve().parents[2]
PAGE = """# A page

## Twice: `x`
## Twice, x
```
## not a heading, [not a link](nowhere.md)
```
[a](other.md) [b](#twice-x-1) [c](other.md#there) [d](https://example.org/x) `[e](nowhere.md)`
[f](gone.md) [g](#twice-x-2) [h](other.md#not-a-heading)
"""


def test_links_to_missing_files_and_headings_are_found(tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "other.md").write_text("### [There](page.md)\n")
    assert release.anchors(tmp_path / "page.md") == {"a-page", "twice-x", "twice-x-1"}
    wrong = ["page.md: gone.md", "page.md: #twice-x-2", "page.md: other.md#not-a-heading"]
    assert list(release.broken_links([tmp_path / "page.md", tmp_path / "other.md"])) == wrong


def test_every_install_of_a_page_must_exist(tmp_path, monkeypatch):
    lines = [
        "pip install -e '.[cpu,tset]' for the author's tests",
        "`pip install -e folder`",
        "pip install -q Known_Name 'listed>=2' misspelt  # a comment",
        "%pip install './ganlab_tf-0.1.0-py3-none-any.whl[cpu]' && other",
    ]
    cells = [{"source": [f"{line}\n"]} for line in lines]
    (tmp_path / "page.ipynb").write_text(json.dumps({"cells": cells}))
    monkeypatch.setattr(release, "in_registry", lambda name: name == "known-name")
    project = {"name": "ganlab-tf", "dependencies": ["listed>=1"], "optional-dependencies": {"cpu": [], "test": []}}
    wrong = ["page.ipynb: .[cpu,tset]", "page.ipynb: misspelt"]
    assert list(release.unknown_installs([tmp_path / "page.ipynb"], project)) == wrong


def test_notes_are_the_section_of_the_version():
    text = "# Changelog\n\n## 0.10.0 - 2027\n\nTen.\n\n## [0.1.0] - Unreleased\n\nOne.\n\n### Added\n\n- x\n"
    assert release.notes("0.1.0", text) == "One.\n\n### Added\n\n- x\n"
    with pytest.raises(release.ReleaseError, match=r"no section for 0\.2\.0"):
        release.notes("0.2.0", text)


def test_a_wheel_has_limits(tmp_path, monkeypatch):
    wheel = tmp_path / "x-1-py3-none-any.whl"
    needs = [f"Requires-Dist: a{n}" for n in range(11)] + ["Requires-Dist: b; extra == 'cpu'"]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x-1.dist-info/METADATA", "\n".join(["Name: x", *needs]))
    release.limits(wheel)
    monkeypatch.setattr(release, "MOST_PACKAGES", 10)
    with pytest.raises(release.ReleaseError, match="requires 11 packages, more than 10"):
        release.limits(wheel)
    monkeypatch.setattr(release, "MOST_BYTES", 100)
    with pytest.raises(release.ReleaseError, match="must be below 100"):
        release.limits(wheel)


def test_a_failed_command_is_an_error_with_what_it_printed():
    with pytest.raises(release.ReleaseError, match=r"ended with 3:\nspoken"):
        release.run([sys.executable, "-c", "print('spoken'); raise SystemExit(3)"])
    with pytest.raises(release.ReleaseError, match="has not ended after 0 s"):
        release.run([sys.executable, "-c", "import time; time.sleep(9)"], most=0.1)


@pytest.mark.slow
def test_a_release_can_be_made_and_used(tmp_path):
    command = [sys.executable, "tools/release.py", "--steps", "2", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "11 required packages. All passed.\n" in done.stdout
    assert {path.suffix for path in tmp_path.iterdir()} == {".whl", ".gz", ".md"}
