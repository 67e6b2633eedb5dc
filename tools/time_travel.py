"""Trains runs of every kind and holds random steps of them, trained again, against the rows that were logged.

    python tools/time_travel.py --steps 1000
    python tools/time_travel.py --steps 30 --kinds spectral_norm labels
    python tools/time_travel.py --faults 20

Steps with the same nearest checkpoint are trained again together. Exits with 1 if a value differs in any bit.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LENGTH = 120
BASE = f"""
include 'base/toy.gin'
experiment.steps = {LENGTH}
experiment.critic_steps = 2
experiment.batch_size = 16
experiment.log_every = 1
experiment.checkpoint_every = 30
experiment.evaluate_every = 0
experiment.evaluators = []
architectures.mlp.width = 16
"""
RING = "experiment.dataset = @datasets.gaussian_ring()\n"
COSINE = """
optimizers.adam.learning_rate = @schedules.cosine()
schedules.cosine.start = 1e-3
schedules.cosine.end = 0.0
"""
# One rate up to an update, and another from then on.
JUMP = """
optimizers.adam.learning_rate = @schedules.constant_then_linear()
schedules.constant_then_linear.start = 1e-3
schedules.constant_then_linear.end = 0.1
schedules.constant_then_linear.over = 1
schedules.constant_then_linear.turn = {turn}
"""
LOGISTIC = "experiment.loss = @losses.non_saturating()\n"
AUGMENTED = "experiment.augmentations = [@augmentations.diff_augment()]\n"
DIGITS = "experiment.dataset = @datasets.digits()\n"
TWO = "experiment.strategy = @strategies.mirrored()\nstrategies.mirrored.virtual_replicas = 2\n"


def _under(*names: str) -> str:
    return f"experiment.constraints = [{', '.join(f'@constraints.{name}()' for name in names)}]\n"


KINDS = {
    "nothing": RING + _under(),
    "weight_clipping": RING + _under("weight_clipping"),
    "gradient_penalty": RING + _under("gradient_penalty"),
    "gradient_penalty_2": RING + TWO + _under("gradient_penalty"),
    "lazy_r1": RING + LOGISTIC + _under("r1") + "constraints.r1.every = 16\n",
    "lazy_r1_2": RING + TWO + LOGISTIC + _under("r1") + "constraints.r1.every = 4\n",
    "spectral_norm": RING + _under("spectral_norm"),
    "spectral_norm_2": RING + TWO + _under("spectral_norm"),
    "max_gradient_penalty": RING + _under("max_gradient_penalty"),
    "bjorck": RING + _under("bjorck"),
    "two_constraints": RING + _under("spectral_norm", "gradient_penalty"),
    "dragan": RING + LOGISTIC + _under("dragan"),
    "lecam": RING + _under("lecam") + "experiment.loss = @losses.hinge()\n",
    "score_drift": RING + _under("score_drift", "gradient_penalty"),
    "average": RING + TWO + _under("gradient_penalty") + "experiment.ema_decay = 0.99\n",
    "schedule": RING + _under("gradient_penalty") + COSINE,
    "labels": DIGITS + _under("gradient_penalty") + "architectures.mlp.labels = 'projection'\n",
    "labels_2": DIGITS + TWO + _under("spectral_norm") + "architectures.mlp.labels = 'concatenation'\n",
    "augmentations": DIGITS
    + _under("gradient_penalty")
    + "experiment.augmentations = [@augmentations.diff_augment()]\n",
    "microbatches": RING + _under("gradient_penalty") + "experiment.microbatches = 2\n",
}


def main() -> None:
    """Checks all kinds and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000, help="how many random steps, over all kinds")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, help="instead, plant this many jumps of the learning rate and find them")
    options = parser.parse_args()

    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")  # split before TensorFlow starts with one
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    if options.faults:
        with tempfile.TemporaryDirectory() as folder:
            planted = random.Random(options.seed).sample(range(2, LENGTH), options.faults)
            found = [bisected(Path(folder), step) for step in planted]
        print(f"{sum(map(int.__eq__, planted, found))} of {len(planted)} found in their step: {sorted(planted)}")
        sys.exit(planted != found)
    begun, each, wrong, values = time.monotonic(), -(-options.steps // len(options.kinds)), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number, kind in enumerate(options.kinds):
            steps = random.Random(f"{options.seed} {kind}").sample(range(1, LENGTH + 1), min(each, LENGTH))
            compared, differing = check(Path(folder), kind, steps, options.seed + number)
            wrong, values = wrong + len(differing), values + compared
            print(f"{kind:<22} {len(steps)} steps, {compared} values, {len(differing)} differ", flush=True)
            for said in differing[:5]:
                print(f"  {said}")
    total = min(each, LENGTH) * len(options.kinds)
    print(
        f"{total} steps of {len(options.kinds)} runs, {values} values: {wrong} differ. {time.monotonic() - begun:.0f} s"
    )
    sys.exit(1 if wrong else 0)


def check(folder: Path, kind: str, steps: list[int], seed: int) -> tuple[int, list[str]]:
    """Trains a run and trains steps of it again; returns how many values were compared, and those that differ."""
    import ganlab
    from ganlab import config
    from ganlab.composition import compose
    from ganlab.training.checkpoints import Checkpoints
    from ganlab.training.time_travel.replaying import figures
    from ganlab.training.time_travel.rewound import Rewound

    path = folder / f"{kind}.gin"
    path.write_text(BASE + KINDS[kind] + f"experiment.seed = {seed}\n", encoding="utf-8")
    run = ganlab.train(compose(config.load([path])), folder / kind)
    logged = {(record.step, record.tag): record for record in run.iter_metrics()}
    saved = [0, *(checkpoint.step for checkpoint in Checkpoints(run.path / "checkpoints").all())]
    together: dict[int, list[int]] = defaultdict(list)
    for step in sorted(steps):
        together[max(start for start in saved if start < step)].append(step)
    compared, differing = 0, []
    for start, some in together.items():
        rewound = Rewound(run, some[0] - 1, some[-1])
        assert rewound.start == start
        for row in rewound.rows(some[-1]):
            if row[0].step not in some:
                continue
            before = [record for (step, _), record in logged.items() if step == row[0].step]
            row = row + figures(rewound, run, before)
            tags = {record.tag for record in before}
            differing += [f"step {row[0].step}: {tag} is missing" for tag in tags - {record.tag for record in row}]
            for record in row:
                then = logged.get((record.step, record.tag))
                compared += 1 + len(record.replicas)
                if then is None or _bits(then) != _bits(record):
                    differing.append(f"step {record.step}: {record.tag} {record} was {then}")
    return compared, differing


def bisected(folder: Path, planted: int) -> int:
    """Trains a run whose learning rate jumps in an update, and returns the update that bisecting finds."""
    import ganlab
    from ganlab import config
    from ganlab.composition import compose

    text = BASE.replace("log_every = 1", "log_every = 20") + KINDS["gradient_penalty"]
    path = folder / f"jump-{planted}.gin"
    path.write_text(text + JUMP.format(turn=planted - 2), encoding="utf-8")
    run = ganlab.train(compose(config.load([path])), folder / f"jump-{planted}")
    found = run.bisect("schedules/critic_optimizer/learning_rate > 0.01")
    return found.step if found else 0


def _bits(record: object) -> tuple[str, ...]:
    return tuple(float(value).hex() for value in (record.reduced, *record.replicas))  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
