"""Labels that a conditional network takes and does not use."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ganlab import Experiment
from ganlab.engine import Draws, ReplicaView, TrainingState, examples_of, latents_of_samples, noise, read
from ganlab_verify.derivatives import moved
from ganlab_verify.report import Row

_ROWS = 4


def row(check: str, experiment: Experiment, state: TrainingState) -> Row | None:
    """The row of networks whose output is the same for another label, also at other weights; None if there are none.

    A critic may leave labels to a loss that takes them.
    """
    classes = experiment.dataset.classes
    if not experiment.architecture.conditional or not classes or classes < 2:
        return None
    numbers = np.arange(_ROWS) % (experiment.dataset.size or _ROWS)
    inputs = {"generator": latents_of_samples(experiment.architecture, _ROWS, 0)}
    if experiment.has_critic and state.critic.network.input_shape is not None and not experiment.loss.labels:
        inputs["critic"] = tf.constant(examples_of(experiment.dataset, numbers, experiment.seed))
    known = [role for role in inputs if not state.players[role].network.given]  # of nothing else for each row
    ignoring = [role for role in known if _ignores(state, role, inputs[role], classes)]
    if not ignoring:
        return None
    detail = (
        f"The {' and the '.join(ignoring)} of this conditional architecture give{'s' * (len(ignoring) == 1)} the same "
        "output for another label, also at other weights: labels are ignored, so nothing teaches classes apart. Use "
        "them in both networks, or take a loss that compares the critic's logits with labels."
    )
    return Row(check, "failed", None, None, detail, {"cause": "ignored labels", "where": ignoring})


def _ignores(state: TrainingState, role: str, x: tf.Tensor, classes: int) -> bool:
    network = state.players[role].network
    weights = {name: value.numpy() for name, value in read(network.weights).items()}
    changed = moved(weights, list(weights))  # scales and embeddings may begin at zero
    outputs = []
    for shift in (0, 1):
        labels = (tf.range(_ROWS, dtype=tf.int64) + shift) % classes
        view = ReplicaView("network", noise.LAYERS, Draws(0, _ROWS, tf.constant(0), tf.constant(0)), None)
        y = network(x, changed, read(network.buffers), given={"labels": labels}, noise=view)[0]
        outputs.append(np.concatenate([np.ravel(value) for value in tf.nest.flatten(y)]))
    one, other = outputs
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-6 * float(np.abs(one).max())))
