"""Makes passports and reads them: a component's inputs and answers, with all that a checker must know in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ganlab
from ganlab.errors import GanlabError, IncompatibleError, RunError
from ganlab_passport import tensors
from ganlab_passport.bench import Bench
from ganlab_passport.subjects import Case, Subject
from ganlab_passport.tensors import Arrays

_FORMAT = "ganlab passport 1"


@dataclass(frozen=True)
class Passport:
    """A passport: its subject, what the file says in words, and by case the inputs and the answers of each dtype."""

    subject: Subject
    facts: Mapping[str, Any]
    inputs: Mapping[str, Arrays]
    answers: Mapping[str, Mapping[str, Arrays]]

    def given(self, ending: str) -> bytes:
        """The file that a program under check gets."""
        return tensors.encode(self._named("input", self.inputs), self.facts, ending)

    def encoded(self, ending: str) -> bytes:
        """The whole file."""
        arrays = self._named("input", self.inputs)
        for dtype in ("float64", "float32"):
            arrays |= self._named(dtype, {case: answers[dtype] for case, answers in self.answers.items()})
        return tensors.encode(arrays, self.facts, ending)

    def _named(self, kind: str, by_case: Mapping[str, Arrays]) -> Arrays:
        return {f"{case}/{kind}/{name}": x for case, named in by_case.items() for name, x in named.items()}


def make(subject: Subject, cases: list[Case] | None = None) -> Passport:
    """Makes the passport of a component, of all its cases or of some.

    Raises:
        IncompatibleError: It fails, or needs other networks or examples than passports have.
    """
    cases = cases or subject.cases()
    try:
        benches = {case.name: Bench(subject, case) for case in cases}
        inputs = {name: bench.inputs() for name, bench in benches.items()}
    except GanlabError as error:
        raise IncompatibleError(f"No passport can be made of {subject.selector}: {error}") from error
    words = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
    facts = {"format": _FORMAT, "ganlab": ganlab.__version__, **subject.facts(), **words}
    facts["cases"] = [asdict(case) for case in cases]
    return Passport(subject, facts, inputs, {name: bench.answers(inputs[name]) for name, bench in benches.items()})


def read(path: Path, subject_of: Callable[[str, list[str]], Subject]) -> Passport:
    """Reads a passport, possibly a stranger's; `subject_of` takes a component's name and its settings.

    Raises:
        RunError: It is not one, or not what this version computes.
    """
    with ganlab.open_regular(path) as file:
        arrays, facts = tensors.decode(file.read(tensors.MOST + 1), str(path))
    texts = [facts.get("component"), *(facts["params"] if isinstance(facts.get("params"), list) else [None])]
    if facts.get("format") != _FORMAT or not all(isinstance(text, str) for text in texts):
        raise RunError(f"{path} is not a passport: it must have been written by 'ganlab passport COMPONENT -o FILE'.")
    subject = subject_of(texts[0], texts[1:])

    def within(case: str, kind: str, like: Arrays) -> Arrays:
        names = {name: f"{case}/{kind}/{name}" for name in like}
        wrong = [full for name, full in names.items() if full not in arrays or arrays[full].shape != like[name].shape]
        if wrong:
            raise _differs(path, subject, wrong[0])
        return {
            name: arrays[full].astype(like[name].dtype if kind == "input" else kind) for name, full in names.items()
        }

    inputs, answers = {}, {}
    for case in (case for case in subject.cases() if any(name.startswith(f"{case.name}/") for name in arrays)):
        bench = Bench(subject, case)
        inputs[case.name] = within(case.name, "input", bench.inputs())
        again = bench.by(None, inputs[case.name])
        answers[case.name] = {dtype: within(case.name, dtype, again) for dtype in ("float64", "float32")}
        for dtype, named in answers[case.name].items():
            wrong = [name for name, x in again.items() if not np.allclose(named[name], x, 1e-3, 1e-4)]
            if wrong:
                raise _differs(path, subject, f"{case.name}/{dtype}/{wrong[0]}")
    if not answers:
        raise _differs(path, subject, "every case")
    return Passport(subject, facts, inputs, answers)


def _differs(path: Path, subject: Subject, what: str) -> RunError:
    again = f"'ganlab passport {subject.selector} -o FILE'"
    return RunError(
        f"{path} does not hold what this version computes: {what} is missing or differs. Make it anew: {again}."
    )
