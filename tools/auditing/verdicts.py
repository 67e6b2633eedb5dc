"""The verdict on each fact of an experiment file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditing.head import Head
from auditing.probes import Probes
from auditing.table import Table
from ganlab import config

# What every table must have a row for.
REQUIRED = (
    *("data.set", "data.split", "data.shape", "data.black", "data.white", "data.flip", "data.crop"),
    *("loss", "constraints", "generator_constraints", "augmentations", "labels", "latent.size", "latent.distribution"),
    *("updates.critic", "updates.steps", "critic.batch", "generator.batch", "ema.decay"),
    *(
        f"{role}.{fact}"
        for role in ("generator", "critic")
        for fact in ("maps", "kernels", "parameters", "normalization", "activations", "without_bias", "start.all")
    ),
    *(f"{role}.{fact}" for role in ("generator", "critic") for fact in ("optimizer", "learning_rate", "last_rate")),
    *("generator.output", "generator.upsampling", "critic.pooling"),
)
# Settings of architectures whose effects are among these; any other one needs a row of its own.
_SEEN = {
    *("latent_dim", "channels", "generator_channels", "critic_channels", "architecture", "distribution", "bound"),
    *("generator_normalization", "critic_normalization", "initializer", "biases", "labels", "upsampling", "pooling"),
    *("doubling", "kernel_size", "group"),
}
# Facts of some optimizers and networks, which then need a row.
_IF_USED = {
    *("beta_1", "beta_2", "rho", "momentum", "epsilon", "first_epsilon", "first_move"),
    *("batch_norm.epsilon", "batch_norm.momentum"),
}
# Settings that need a row unless they are as usual.
_USUAL = {"experiment.precision": "float32", "experiment.microbatches": 1}


@dataclass(frozen=True)
class Row:
    """A fact of a file, both values, the verdict and the source."""

    file: str
    fact: str
    theirs: Any
    ours: Any
    verdict: str
    source: str

    @property
    def failed(self) -> bool:
        """Whether the audit fails."""
        return self.verdict not in ("equal", "disclosed")

    def __str__(self) -> str:
        return f"{self.verdict:<9} {self.fact}: theirs {self.theirs!r}, ours {self.ours!r} [{self.source}]"


def audit(file: Path, table: Table) -> list[Row]:
    """A row for each fact, and one for each that is missing or that only the head states."""
    head = Head(file)
    probes = Probes(config.load([file]))
    rows = []
    for name, fact in table.items():
        try:
            ours = head.stated(name, fact.value) if name.startswith(("head.", "published.")) else probes[name]
        except KeyError:
            # Beyond the probes, like the order of updates: the head has to state it.
            verdict = "disclosed" if fact.words and head.has(fact.words) else "NO PROBE"
            ours = "-"
        else:
            verdict = _verdict(fact.value, ours, fact.words, head)
        rows.append(Row(file.stem, name, fact.value, ours, verdict, fact.source))
    for name in required(probes):
        if name not in table and not any(fact.startswith(f"{name}.") for fact in table):
            rows.append(Row(file.stem, name, "?", "-", "NO ROW", "no source"))
    pointed = [fact.words for fact in table.values() if fact.words]
    for stated in head.differences:
        if not any(words in stated or stated in words for words in pointed):
            rows.append(Row(file.stem, "head", "?", stated, "NO ROW", "no source"))
    return rows


def required(probes: Probes) -> list[str]:
    """The facts that a table must have, by what the experiment uses."""
    found = [*REQUIRED]
    for name in probes:
        kind, _, setting = name.partition(".")
        component = kind in ("constraints", "losses", "augmentations") and "/" not in name and setting
        network = kind == "architectures" and name.rpartition(".")[2] not in _SEEN
        if component or network or (kind in ("generator", "critic") and setting in _IF_USED):
            found.append(name)
    if probes["ema.decay"]:
        found += ["ema.rate", "ema.buffers"]
    return found + [name for name, usual in _USUAL.items() if probes[name] != usual]


def _verdict(theirs: Any, ours: Any, words: str | None, head: Head) -> str:
    same = equal(theirs, ours)
    if words is None:
        return "equal" if same else "DIFFERS"
    if same:
        return "NEEDLESS WORDS"
    return "disclosed" if head.has(words) else "UNDISCLOSED"


def equal(theirs: Any, ours: Any) -> bool:
    """Whether two values are equal, fractions up to rounding in float32."""
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(equal, theirs, ours))
    if isinstance(theirs, float) and isinstance(ours, float):
        return math.isclose(theirs, ours, rel_tol=1e-6, abs_tol=1e-11)
    return type(theirs) is type(ours) and theirs == ours
