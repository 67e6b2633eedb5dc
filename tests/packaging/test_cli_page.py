"""docs/cli.md agrees with the help of the commands."""

import re
import runpy

from click.testing import CliRunner
from pages import ROOT

from ganlab.cli import COMMANDS, cli

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_cli_page_is_up_to_date():
    page = runpy.run_path(str(ROOT / "tools" / "cli_reference.py"))["page"]
    assert page() == PAGE, "The help of a command has changed. Regenerate the page: python tools/cli_reference.py"


def test_every_command_has_a_section_with_every_option_of_its_help():
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
    assert {f"ganlab {name}" for name in COMMANDS} <= set(sections)
    for title, section in sections.items():
        help_text = CliRunner().invoke(cli, [*title.split()[1:], "--help"]).stdout
        options = re.findall(r"^  (?:-\w, )?(-[\w-]+)", help_text.partition("\nOptions:\n")[2], re.MULTILINE)
        assert options[-1] == "--help"
        assert [option for option in options[:-1] if f"`{option}" not in section] == [], title
