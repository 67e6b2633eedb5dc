"""`ganlab compare`: runs side by side, with the noise between seeds."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab.commands import LocalPath, RunsPath, say, say_json, table_console
from ganlab.errors import RunError
from ganlab.files import line, new_file

if TYPE_CHECKING:
    from ganlab_compare import Comparison
    from ganlab_compare.pairing import Paired
    from ganlab_compare.paper import Paper

    Pairs = dict[tuple[str, str], Paired]


@click.command("compare")
@click.argument("runs", metavar="RUN|FOLDER|GLOB...", type=RunsPath("list"), nargs=-1, required=True)
@click.option(
    "--by",
    metavar="SETTING",
    multiple=True,
    help="Group runs by this setting, given by its full name or its last part, for example weight. Runs that differ in "
    "other settings are pooled. May be given several times.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="TAG",
    multiple=True,
    help="A metric to compare, for example critic/loss or modes; TAG:max or TAG:min sets which values are better. By "
    "default the evaluators' figures and critic/wasserstein. May be given several times.",
)
@click.option(
    "--against",
    metavar="CONFIGURATION",
    help="The baseline that improvement is measured against; by default each metric's best configuration.",
)
@click.option(
    "--paired",
    is_flag=True,
    help="Also print each difference from the first configuration in the order of settings, or from --against, over "
    "pairs of runs that share a seed or are fork and parent, beside the interval without pairing.",
)
@click.option("--all", "everything", is_flag=True, help="Print every row with every metric, and the notes.")
@click.option(
    "--statistics",
    is_flag=True,
    help="Also print the probability that a configuration is better than another, and what may be chance.",
)
@click.option("--csv", "csv_file", metavar="FILE", type=LocalPath(), help="Also write a CSV file.")
@click.option("--html", "html_file", metavar="FILE", type=LocalPath(), help="Also write an HTML report.")
@click.option(
    "--paper",
    "as_paper",
    is_flag=True,
    help="Print tables for a paper instead, in Markdown and LaTeX, and what may be written of them: of interquartile "
    "means, differences tested and corrected for their number, and tuning. Rows differ in --by, by default in parts.",
)
@click.option(
    "--paper-folder",
    metavar="FOLDER",
    type=LocalPath(),
    help="Write these as paper.md and paper.tex into this folder instead.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead of tables.")
def compare(
    runs: tuple[str, ...],
    by: tuple[str, ...],
    metrics: tuple[str, ...],
    against: str | None,
    paired: bool,
    everything: bool,
    statistics: bool,
    csv_file: Path | None,
    html_file: Path | None,
    as_paper: bool,
    paper_folder: Path | None,
    as_json: bool,
) -> None:
    """Compares runs, one row per configuration: the runs whose settings differ only in the seed.

    Prints ten lines: the best rows first, the settings that differ, and a metric's mean over the seeds with its 95%
    interval. --all prints the rest, --statistics and --against the probability that one configuration is better than
    another. Runs may be in progress.

    \b
    ganlab compare runs/my-sweep --all --statistics
    ganlab compare runs/quickstart --by constraints --metric mode_coverage/modes
    ganlab compare 'runs/*/baseline-*' --metric critic/wasserstein:min --html report.html
    ganlab compare runs/my-sweep --paired --against weight=10
    ganlab compare runs/my-sweep --paper --by constraints --metric modes
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    from ganlab_compare import as_data, to_csv
    from ganlab_compare import compare as compared

    if csv_file is not None and csv_file == html_file:
        raise click.UsageError(f"--csv and --html are both {csv_file}. Name two files.")
    as_paper = as_paper or paper_folder is not None
    comparison = compared(runs, by=by, metrics=metrics, against=None if as_paper else against)
    if csv_file is not None:
        with new_file(csv_file) as file:
            file.write(_encoded(to_csv(comparison)))
    if html_file is not None:
        from ganlab_compare import to_html

        with new_file(html_file) as file:
            file.write(_encoded(to_html(comparison)))
    pairs = _pairs(comparison, against) if paired else {}
    if as_paper:
        from ganlab_compare.paper import paper

        found = paper(comparison, by=by, metrics=comparison.metrics if metrics else (), against=against)
        _write_paper(found, paper_folder, quiet=as_json)
    if as_json:
        say_json({**as_data(comparison), **_paired_data(pairs), **({"paper": asdict(found)} if as_paper else {})})
    if as_json or as_paper:
        return

    from ganlab_compare import table

    console = table_console()
    if everything:
        table.print_tables(comparison, console)
    else:
        table.print_brief(comparison, console, comparison.metrics if metrics else ())
    if statistics or against is not None:
        table.print_statistics(comparison, console)
    if pairs:
        from ganlab_compare.pairing import sentences

        say("\nPaired:\n")
        for sentence in sentences(pairs):
            say(line(f"- {sentence}"))
    for path in (csv_file, html_file):
        if path is not None:
            say(f"Wrote {line(path)}")


def _write_paper(paper: Paper, folder: Path | None, *, quiet: bool) -> None:
    """Writes a paper's files, each completely or not at all, or prints them."""
    texts = {"paper.md": paper.text("markdown"), "paper.tex": paper.text("latex")}
    if folder is None:
        say("" if quiet else "\n".join(texts.values()), nl=False)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"--paper-folder {line(folder)} cannot be created: {error.strerror}. Give another.") from error
    with ExitStack() as files:
        for name, text in texts.items():
            files.enter_context(new_file(folder / name)).write(_encoded(text))
    if not quiet:
        say(f"Wrote {line(folder / 'paper.md')} and {line(folder / 'paper.tex')}")


def _encoded(text: str) -> bytes:
    """Text as UTF-8; a byte of a file name that is not text becomes an escape."""
    return text.encode("utf-8", errors="backslashreplace")


def _pairs(comparison: Comparison, against: str | None) -> Pairs:
    from ganlab_compare.configurations import reference
    from ganlab_compare.pairing import paired

    return paired(comparison, None if against is None else reference(against, comparison.configurations))


def _paired_data(pairs: Pairs) -> dict[str, object]:
    rows = [{"label": label, "tag": tag, **asdict(one)} for (label, tag), one in pairs.items()]
    return {"paired": rows} if rows else {}
