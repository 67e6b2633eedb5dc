"""Compares a program's answers with a passport, and finds the convention that they follow instead."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ganlab.errors import RunError, nearest
from ganlab_passport.bench import Bench
from ganlab_passport.conventions import Variant, has_slope, variants
from ganlab_passport.passport import Passport
from ganlab_passport.subjects import Case
from ganlab_passport.tensors import Arrays

# How far an answer may be from the passport's, relative to its norm: float32 on any device, and less than what any
# convention changes. Where every slope is zero only the kind of the answer counts: the root's epsilon is anybody's.
LIMIT, _FLAT_LIMIT = 1e-3, 0.1
# A weight's gradient is compared relative to its own norm, or to this part of the whole gradient's.
_SHARE = 1e-2
# What is smaller is zero, and has no factor.
_ZERO = 1e-9
_NO_EPSILON = "no epsilon under the root: not a number where the slope is zero"
_NO_SECOND = "no second derivative: the gradient by the weights is zero"
# By what the mean over the batch and its gradient may be multiplied, given a case and the setting that is the weight.
_FACTORS: Mapping[str, Callable[[Case, float], float]] = {
    "": lambda case, weight: 1.0,
    "sum over the examples for their mean": lambda case, weight: case.batch,
    "mean divided by the batch once more": lambda case, weight: 1 / case.batch,
    "summed over replicas": lambda case, weight: case.replicas,
    "divided by the number of replicas once too often": lambda case, weight: 1 / case.replicas,
    "sum over the examples of a replica for the mean of all": lambda case, weight: case.batch / case.replicas,
    "half of the weight": lambda case, weight: 0.5,
    "twice the weight": lambda case, weight: 2.0,
    "without its weight": lambda case, weight: 1 / weight if weight else np.nan,
    "the weight squared": lambda case, weight: weight or np.nan,
    "with the opposite sign": lambda case, weight: -1.0,
}


@dataclass(frozen=True)
class Verdict:
    """What the answers are.

    Attributes:
        status: "passed"; "other" for a known convention that trains the same in distribution; "failed".
        conventions: The known conventions, each of which explains all answers; several if these cases agree on them.
        error: The largest relative error, against the convention if there is one.
        notes: Further observations, a sentence each.
        unanswered: The cases without an answer.
        right: The cases whose answers are the passport's.
    """

    status: str
    conventions: Sequence[str]
    error: float
    notes: Sequence[str]
    unanswered: Sequence[str]
    right: Sequence[str]


def check(passport: Passport, answers: Arrays) -> Verdict:
    """The verdict on a program's answers, named as the file says.

    Raises:
        RunError: A name is unknown, an answer is missing, or a shape is not the passport's.
    """
    given = _by_case(passport, answers)
    unanswered = [name for name in passport.answers if name not in given]
    cases = [case for case in passport.subject.cases() if case.name in given]
    bad = [case for case in cases if not all(np.isfinite(x).all() for x in given[case.name].values())]
    checked = _Checked(passport, given, [case for case in cases if case not in bad])
    right = [case.name for case in cases if case.name in checked.right()]
    if bad and not all(case.flat for case in bad):
        note = f"Answers are not finite in {', '.join(case.name for case in bad)}."
        return Verdict("failed", [], np.inf, [note], unanswered, right)
    found, error, same = checked.explanation()
    if len(right) == len(cases):  # each within the limit, though no one factor is
        found = [""]
    named = ["; ".join(filter(None, (words, _NO_EPSILON if bad else ""))) for words in found or [""] * bool(bad)]
    status = "passed" if named == [""] else "other" if same and not bad else "failed"
    right = [*given] if status == "passed" else right
    notes = [] if found else [*checked.observations()]
    return Verdict(status, [*filter(None, named)], error, notes, unanswered, right)


class _Checked:
    """A program's answers, beside what each convention would have answered."""

    def __init__(self, passport: Passport, given: Mapping[str, Arrays], cases: Sequence[Case]) -> None:
        # The cases that tell conventions apart come first.
        self._cases = sorted(cases, key=lambda case: (case.flat, -len(case.shape) * case.batch))
        self._passport, self._given = passport, given
        self._bench = functools.cache(lambda case: Bench(passport.subject, case))
        settings = passport.subject.facts()["settings"]
        weights = [settings.get(name) for name in ("weight", "gamma")]
        self._weight = next((float(x) for x in weights if isinstance(x, (int, float))), 0.0)

    def explanation(self) -> tuple[list[str], float, bool]:
        """The phrases that each explain all answers, "" for the passport's own; the error; whether they are harmless.

        First the own formula and its factors, then other formulas one by one, and then two at a time.
        """
        if (words := self._factor(self._own, any_factor=True)) is not None:
            return [words[0]], words[1], False
        first = self._cases[0]
        for count in (1, 2) if has_slope(self._bench(first).made) else ():
            found = []
            for variant in variants(self._bench(first).made, self._passport.inputs[first.name], count):
                if (words := self._factor(functools.partial(self._by, variant))) is not None:
                    found.append(("; ".join(filter(None, (variant.words, words[0]))), words, variant.is_harmless))
            plain = [one for one in found if not one[1][0]] or found
            if plain:
                return [one[0] for one in plain], max(one[1][1] for one in plain), all(one[2] for one in plain)
        return [], max(_error(self._given[case.name], self._own(case), 1.0) for case in self._cases), False

    def _own(self, case: Case) -> Arrays:
        return self._passport.answers[case.name]["float64"]

    def _by(self, variant: Variant, case: Case) -> Arrays:
        return self._bench(case).by(variant, self._passport.inputs[case.name])

    def _factor(self, answer: Callable[[Case], Arrays], any_factor: bool = False) -> tuple[str, float] | None:
        """The factor by which all answers differ from a formula's, in words, and the error; None if there is none."""
        factors, worst = [], 0.0
        all_given, all_own = (
            [x for case in self._cases for n, x in of(case).items() if n.startswith("gradient/")]
            for of in (lambda case: self._given[case.name], self._own)
        )
        no_second = not any(map(np.any, all_given)) and any(map(np.any, all_own))
        for case in self._cases:
            expected, given = answer(case), self._given[case.name]
            known = abs(float(expected["reduced"])) > _ZERO
            factor = float(given["reduced"] / expected["reduced"]) if known else 1.0
            compared = {
                n: x for n, x in given.items() if n != "value" and not (no_second and n.startswith("gradient/"))
            }
            error = _error(compared, expected, factor)
            if "value" in given:  # with or without the factor: what scales the mean alone leaves it
                error = max(error, min(_error({"value": given["value"]}, expected, by) for by in (factor, 1.0)))
            if not error <= (_FLAT_LIMIT if case.flat else LIMIT):
                return None
            if known and not case.flat:
                factors.append((case, factor))
                worst = max(worst, error)
        named = [
            words
            for words, of in _FACTORS.items()
            if all(abs(factor / of(case, self._weight) - 1) <= 2 * LIMIT for case, factor in factors)
        ]
        first = factors[0][1] if factors else np.nan
        if not named and any_factor and all(abs(factor / first - 1) <= 2 * LIMIT for _, factor in factors):
            named = [f"a factor of {first:.4g} in every case"]
        return ("; ".join(filter(None, (named[0], _NO_SECOND * no_second))), worst) if named and factors else None

    def right(self, *names: str) -> list[str]:
        """The cases in which the answers of these names, by default all, are the passport's."""

        def wrong(case: Case) -> float:
            given = {name: x for name, x in self._given[case.name].items() if name in names or not names}
            return _error(given, self._own(case), 1.0)

        return [case.name for case in self._cases if wrong(case) <= (_FLAT_LIMIT if case.flat else LIMIT)]

    def observations(self) -> Iterator[str]:
        """What is seen where no known convention explains the answers."""
        pairs = {case.name: (self._given[case.name], self._own(case)) for case in self._cases}
        if len(self.right("scores")) < len(pairs):
            yield "The critic's scores differ already: the networks are not the same. Compare the layouts of kernels."
        elif len(self.right("reduced")) == len(pairs):
            errors = {f"{c}/{n}": _error({n: x}, e, 1.0) for c, (g, e) in pairs.items() for n, x in g.items()}
            worst = max(errors, key=errors.__getitem__)
            yield f"All reduced values are right, but {worst} is off by {errors[worst]:.1e} of its norm."
        else:
            yield f"Right in {', '.join(self.right()) or 'no case'}."
            for name, (given, expected) in list(pairs.items())[:3]:
                yield f"{name}: {float(given['reduced']):.6g} for {float(expected['reduced']):.6g}."


def _error(given: Mapping[str, np.ndarray], expected: Arrays, factor: float) -> float:
    """The largest error of some answers relative to their norms, gradients at least to a share of the whole one's."""
    whole = np.sqrt(sum(float(np.sum(np.square(x))) for name, x in expected.items() if name.startswith("gradient/")))
    errors = [0.0]
    for name, x in given.items():
        right = np.asarray(expected[name], np.float64) * (1.0 if name == "scores" else factor)
        least = _SHARE * whole * abs(factor) if name.startswith("gradient/") else 0.0
        errors.append(float(np.linalg.norm(x - right)) / max(float(np.linalg.norm(right)), least, 1e-6))
    return float(np.max(errors))


def _by_case(passport: Passport, answers: Arrays) -> dict[str, Arrays]:
    """The answers in float64 by case and name, checked against the passport's names and shapes."""
    known = {f"{case}/{name}": x for case, by in passport.answers.items() for name, x in by["float64"].items()}
    by_case: dict[str, Arrays] = {}
    for name, x in answers.items():
        if name not in known:
            raise RunError(f"The program answered {name!r:.80}, which is not asked for.{nearest(name, known)}")
        if x.shape != known[name].shape:
            raise RunError(f"The program answered {name} of the shape {x.shape}; it must be {known[name].shape}.")
        case, _, own = name.partition("/")
        by_case.setdefault(case, {})[own] = np.asarray(x, np.float64)
    needed = [name for name in known if name.partition("/")[0] in by_case and not name.endswith(("/value", "/scores"))]
    missing = [name for name in needed if name not in answers]
    if missing or not by_case:
        what = missing[0] if missing else next(iter(known))
        raise RunError(f"The program's answer lacks {what}: a case has 'reduced' and all gradients, or nothing.")
    return by_case
