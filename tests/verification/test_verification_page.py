"""The table in docs/verification.md lists the shipped experiments."""

import re
from pathlib import Path

from ganlab_verify import CHECKS

from ganlab.config import shipped_gin_files

# gin/paper differs in settings that the checks do not depend on; gin/methods has a table of its own.
ALL = [
    p.stem for p in shipped_gin_files() if p.parent.name not in ("base", "benchmark", "methods", "paper", "published")
]
METHODS = {p.stem for p in shipped_gin_files() if p.parent.name == "methods"}
PAGE = (Path(__file__).parents[2] / "docs" / "verification.md").read_text(encoding="utf-8")


def test_every_shipped_experiment_is_in_the_table_and_has_passed():
    # As `ganlab verify --all` prints it, and one of gin/methods; run them again for a new experiment.
    shipped, methods = (
        table.splitlines() for table in re.findall(r"^```\n(experiment .*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    )
    assert shipped[0].split() == methods[0].split() == ["experiment", *CHECKS]
    assert [line.split()[0] for line in shipped[1:]] == ALL
    assert {line.split()[0] for line in methods[1:]} <= METHODS
    for line in shipped[1:] + methods[1:]:
        cells = re.findall(r"(\S+) < (\S+)|(passed|refused|\d\.\de-\d\d)", line)
        assert len(cells) == len(CHECKS), line
        assert all(word or float(figure) <= float(limit) for figure, limit, word in cells), line


def test_every_option_of_the_command_is_on_the_page():
    from ganlab_verify.command import verify

    options = {name for parameter in verify.params for name in parameter.opts if name.startswith("--")}
    assert [name for name in sorted(options) if name not in PAGE] == []
