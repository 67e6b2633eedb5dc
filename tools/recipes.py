"""Holds each file of gin/published against facts that were read from the program or the paper that it follows.

    python tools/recipes.py                     # all
    python tools/recipes.py gngan_cifar10_cnn   # some, by name or by the path of a gin file
    python tools/recipes.py --ours NAME         # what the probes see here, to fill in a table
    python tools/recipes.py --sources FOLDER    # prints the cited line beside each row

The tables in tools/recipes hold what the source does and where that stands. What the file does here is computed: from
its resolved settings with all defaults, from networks that are built without weights, from optimizers that make a step,
and from made images that pass through its preprocessing. A row is "equal"; or "disclosed", if the head of the file has
the words that the row points to; or the audit fails and exits with 1. It also fails if a fact that every file must have
is missing, or if the head states a difference that no row is about. FOLDER holds bare clones, named OWNER+REPOSITORY.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from auditing.table import Table, cited_line
from auditing.verdicts import Row, audit

from ganlab import config


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="names or paths of files; all by default")
    parser.add_argument("--ours", action="store_true", help="print what the probes see, and judge nothing")
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="print the cited lines, from clones in here")
    options = parser.parse_args()
    known = {path.stem: path for path in config.shipped_gin_files() if path.parent.name == "published"}
    files = [Path(name) if name.endswith(".gin") else known.get(name) for name in options.names or known]
    if None in files:
        parser.error(f"unknown: {options.names[files.index(None)]}; there are {', '.join(known)}")
    rows, failed = 0, []
    for file in files:
        if options.ours:
            from auditing.probes import Probes

            probes = Probes(config.load([file]))
            print(*(f"{file.stem}  {fact} = {probes[fact]!r}" for fact in probes), sep="\n")
            continue
        found = audit(file, Table.of(file.stem))
        rows += len(found)
        failed += [row for row in found if row.failed]
        print(f"\n{file.stem}: {len(found)} rows")
        for row in found:
            print(f"  {row}")
            if options.sources and (line := cited_line(row.source, options.sources)) is not None:
                print(f"      | {line.strip()}")
    if options.ours:
        return 0
    print(f"\n{len(files)} files, {rows} rows: {_verdict(failed)}")
    return 1 if failed else 0


def _verdict(failed: list[Row]) -> str:
    if not failed:
        return "every row is equal or disclosed."
    return "\n".join([f"{len(failed)} FAILED", *(f"  {row.file}: {row}" for row in failed)])


if __name__ == "__main__":
    sys.exit(main())
