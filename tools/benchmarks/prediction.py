"""The time of an iteration as `ganlab plan --topology cpu` predicts it, against the measured time."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from benchmarks.loops import ganlab_run
from benchmarks.pairs import Figure, Ratio

_BASE = "base/wgan_gp.gin"
_ONE = "experiment.strategy=@strategies.one_device()"
# The two models of the other families as experiment files have them; their images come from cases.py, as a plugin.
_MODELS = {
    "MLP": (
        "experiment.dataset=@datasets.gaussian_ring()",
        "experiment.architecture=@architectures.mlp()",
        "architectures.mlp.width=512",
        "constraints.gradient_penalty.weight=0.1",
        "experiment.batch_size=256",
    ),
    "DCGAN": (
        "experiment.dataset=@datasets.table()",
        "experiment.architecture=@architectures.dcgan()",
        "architectures.dcgan.channels=64",
        "architectures.dcgan.generator_normalization='none'",
    ),
}
_SHIPPED = ("swiss_roll", "digits_spectral_norm")
_FAR = 0.25


def prediction(rounds: int) -> list[Ratio | Figure]:
    """The time of an iteration that `ganlab plan --topology cpu` predicts, over the time measured before and after it.

    The bar is on both sides: a prediction is to be within a quarter of what is measured.
    """
    from ganlab_plan import place, plan
    from ganlab_verify.report import Source

    plugin = str(Path(__file__).with_name("cases.py"))
    sources = {name: Source((_BASE,), (_ONE, *params), plugin_file=plugin) for name, params in _MODELS.items()}
    sources |= {name: Source((name,)) for name in _SHIPPED}
    rows: list[Ratio | Figure] = []
    for name, source in sources.items():
        with ganlab_run("source", None, source=asdict(source)) as run:
            run.ready()
            count = max(1, round(2.0 / min(run.train(2), run.train(8))))
            pairs = []
            for _ in range(min(rounds, 3)):
                before = run.train(count)
                (found,) = plan(source, [place("cpu")])
                assert found.time is not None, found.notes
                pairs.append((found.time.total, (before + run.train(count)) / 2))
        rows.append(Ratio(f"{name}: predicted / measured, at least {1 - _FAR}", pairs, 1 + _FAR))
    return rows
