"""Holds published experiments against the programs that they come from.

    python tools/fidelity.py mimicry_sngan_32
    python tools/fidelity.py               # all
    python tools/fidelity.py --live        # against the program itself instead of its recorded numbers
    python tools/fidelity.py --record      # writes tests/fidelity/records

Both programs build the same networks at a reduced width and fill them with the same weights. Compared are samples,
scores, losses, the gradient of every weight, and the weights after two updates of Adam, in float64; and at the
published width how many parameters there are. --live and --record need PyTorch, torch-mimicry, and for BigGAN and R3GAN
folders with the source of BigGAN-PyTorch (--biggan) and of R3GAN (--r3gan), here or in the environment of another
interpreter (--python), which runs in a process of its own.

Spectral normalization is compared at singular vectors: there both programs have the same estimate of the norm, although
ganlab makes one power iteration for each update of the critic and these programs one for each call of it.

Exits with 1 if a number differs by more than 1e-5 of the reference's norm.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fidelities import biggan, mimicry, r3gan
from fidelities.comparing import LIMIT, RECORDS, differences, record, recorded
from fidelities.recipe import CASES, Case

# Programs that are no packages, by the option that names a folder with their source.
SOURCES = {"biggan": ("BigGAN-PyTorch", biggan), "r3gan": ("R3GAN", r3gan)}


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(CASES)}; all by default")
    parser.add_argument("--live", action="store_true", help="compare with the program itself")
    parser.add_argument("--record", action="store_true", help="write the reference's numbers down, and compare nothing")
    parser.add_argument("--to", type=Path, default=RECORDS, metavar="FOLDER", help="where --record writes them")
    for name, (program, _) in SOURCES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"the source of {program}")
    parser.add_argument("--python", default=sys.executable, help="the interpreter for --live that has torch-mimicry")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CASES)}")
    cases = [CASES[name] for name in options.names or CASES]
    if options.record:
        if not mimicry.installed():
            parser.error("--record needs PyTorch and torch-mimicry: pip install torch torch-mimicry")
        for case in cases:
            kind = case.kind.partition("_deep")[0]
            if kind not in SOURCES:
                found = mimicry.numbers(case), mimicry.parameters(case), mimicry.version()
            elif source := getattr(options, kind):
                program = SOURCES[kind][1]
                found = program.numbers(case, source), program.parameters(case, source), program.version()
            else:
                name, program = SOURCES[kind]
                parser.error(f"{case.name} needs --{kind}, a folder with {name} at commit {program.COMMIT}")
            print(record(case, *found, options.to))
        return 0
    if not options.live:
        return _all(cases, RECORDS)
    with tempfile.TemporaryDirectory() as folder:
        # In a process of its own: PyTorch and TensorFlow do not always load into one.
        command = [options.python, __file__, *(case.name for case in cases), "--record", "--to", folder]
        for name in SOURCES:
            command += [f"--{name}", str(getattr(options, name))] if getattr(options, name) else []
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            return 2
        return _all(cases, Path(folder))


def _all(cases: list[Case], folder: Path) -> int:
    return 0 if sum(compare(case, folder) for case in cases) == len(cases) else 1


def compare(case: Case, folder: Path) -> bool:
    """Prints how far a case lies from the record in a folder, and returns whether it is near enough."""
    from fidelities import ours

    found = recorded(case, folder)
    there, program = found["parameters"], found["reference"]
    apart, here = differences(ours.numbers(case), found["numbers"]), ours.parameters(case)
    worst = max(apart, key=lambda name: apart[name])
    counts = ", ".join(f"{role} {here[role]:,}" for role in there)
    if here != there:
        counts += f", but the reference has {', '.join(f'{role} {count:,}' for role, count in there.items())}"
    holds = apart[worst] <= LIMIT and here == there
    print(f"{case.name}: {'equal to' if holds else 'DIFFERS from'} {program}")
    print(f"  {len(apart)} numbers, the largest difference {apart[worst]:.1e} in {worst}; parameters: {counts}")
    return holds


if __name__ == "__main__":
    sys.exit(main())
