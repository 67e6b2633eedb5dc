"""Replays a step of a run and holds it against the row that was logged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ganlab import Diagnostic, Record
from ganlab.engine import DiagnosticSchedule, Evaluation, Rewound, make, overrides
from ganlab.errors import RunError
from ganlab.runs import RunDirectory

# Tags of figures that evaluations and diagnostics add to a step's row.
_FOUND = ("evaluation/", "diagnostics/")
_BOUND = "/lipschitz_bound"


@dataclass(frozen=True)
class Replayed:
    """A step of a run, trained again.

    Attributes:
        step: The step.
        start: The step of the checkpoint that training began from again; 0 for the run's initial weights.
        row: The metrics of the step's row, or of its iteration alone if the run logged no row there.
        logged: The row in metrics.jsonl; empty if there is none.
        found: The figures of diagnostics that were asked for besides.
    """

    step: int
    start: int
    row: list[Record]
    logged: list[Record]
    found: list[Record]

    @property
    def differing(self) -> list[str]:
        """The tags whose values are not those that were logged, bit for bit; empty if nothing was logged."""
        if not self.logged:
            return []
        now, then = ({record.tag: _bits(record) for record in row} for row in (self.row, self.logged))
        return sorted(tag for tag in now.keys() | then.keys() if now.get(tag) != then.get(tag))


def replay(
    run: RunDirectory,
    *,
    step: int,
    diagnostics: Sequence[str] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Replayed:
    """`ganlab.Run.replay`, which has the documentation; `say` takes sentences about what may differ."""
    if step < 1:
        raise RunError(f"step = {step}: the first step is 1, the state after one generator update.")
    extra = _diagnostics(run, diagnostics)
    logged = [record for record in run.iter_metrics() if record.step == step]
    rewound = Rewound(run, step - 1, step, say)
    row: list[Record] = []
    if logged:
        for records in rewound.rows(step):
            row = records if records[0].step == step else row
        row = row + figures(rewound, run, logged)
    else:
        row = [record for records in rewound.iterations(step) for record in records if record.step == step]
    besides: list[Record] = []
    if extra:
        experiment = dataclasses.replace(rewound.experiment, diagnostics=extra)
        besides = DiagnosticSchedule(experiment, rewound.trainer.state).check().records
    besides = [dataclasses.replace(record, step=step) for record in besides]
    return Replayed(step, rewound.start, row, logged, besides)


def figures(rewound: Rewound, run: RunDirectory, logged: Sequence[Record]) -> list[Record]:
    """The figures of the evaluation and the diagnostics that the logged row has, found again."""
    experiment, state = rewound.experiment, rewound.trainer.state
    records: list[Record] = []
    evaluated = any(r.tag.startswith(_FOUND[0]) or r.tag.endswith(_BOUND) for r in logged)
    if evaluated:
        records += Evaluation(experiment, state)(rewound.step, run).records
    if any(r.tag.startswith(_FOUND[1]) for r in logged):
        last = rewound.step in rewound.ends
        due = experiment.evaluate_every > 0 and rewound.step % experiment.evaluate_every == 0
        looked = DiagnosticSchedule(experiment, state)(rewound.step, evaluating=last or due, last=last)
        records += looked.records if looked is not None else []
    return records


def _diagnostics(run: RunDirectory, names: Sequence[str]) -> tuple[Diagnostic, ...]:
    if not names:
        return ()
    recipe = run.recipe([overrides.components("diagnostics", names, f"diagnostics {', '.join(names)}")], only=())
    return tuple(make(recipe.arguments["diagnostics"]))


def _bits(record: Record) -> tuple[str, ...]:
    """The values as they compare bit for bit: NaN equals NaN, and 0.0 differs from -0.0."""
    values = map(float, (record.reduced, *record.replicas))
    return tuple("nan" if math.isnan(value) else value.hex() for value in values)
