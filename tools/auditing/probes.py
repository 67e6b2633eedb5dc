"""What an experiment file does here, by the names that the tables use."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import keras
import tensorflow as tf

from auditing import made_images, networks
from ganlab import config
from ganlab.composition import make
from ganlab.plugins.recipes import Recipe
from ganlab.training.graph.generator_update import _average_decay

_LISTS = ("constraints", "generator_constraints", "augmentations")
# A gradient as large as the usual epsilon.
_SMALL = 1e-8
_KERAS = ("mnist", "cifar10")


class Probes:
    """Facts by name, each computed from the experiment; a KeyError for a name that nothing here computes."""

    def __init__(self, experiment: Recipe) -> None:
        self._experiment = experiment
        self._facts = dict(self._computed())

    def __getitem__(self, name: str) -> Any:
        first, _, last = name.rpartition(".")
        if last.isdigit():
            return self._at(first, int(last))
        return self._facts[name]

    def __iter__(self) -> Iterator[str]:
        """The names of all facts but those that take a step."""
        return iter(self._facts)

    def _computed(self) -> Iterator[tuple[str, Any]]:
        flat, given = config.flatten(self._experiment), self._experiment.arguments
        yield from flat.items()
        yield "loss", flat["loss"]
        for part in _LISTS:
            yield part, flat[part].split(", ") if part in flat else ["none"]
        name, data = made_images.dataset(given["dataset"])
        yield "data.split", flat.get(f"datasets.{'keras' if name in _KERAS else 'tfds'}.split")

        architecture = make(given["architecture"])
        inner, wrappers = given["architecture"], set()
        while inner.name in ("latents", "unit_pixels"):
            wrappers.add(inner.name)
            inner = inner.arguments["architecture"]
        labels = "projection" if architecture.conditional else "none"
        yield "labels", flat.get(f"architectures.{inner.name}.labels", labels)
        yield "latent.size", architecture.latent_dim
        distribution = flat.get("architectures.latents.distribution", "normal")
        bound = f" at {flat['architectures.latents.bound']:g}" if distribution == "truncated" else ""
        yield "latent.distribution", f"{distribution}{bound}"
        for fact, value in made_images.facts(given["dataset"]):
            seen = fact in ("black", "white") and "unit_pixels" in wrappers  # as critics of images in [0, 1] see them
            yield f"data.{fact}", [(pixel + 1) / 2 for pixel in value] if seen else value
        for role in ("generator", "critic"):
            model = networks.built(architecture, role, tuple(data.sample_shape), data.classes)
            yield from ((f"{role}.{fact}", value) for fact, value in networks.facts(model))

        size, updates, steps = flat["experiment.batch_size"], flat["experiment.critic_steps"], flat["experiment.steps"]
        samples = flat.get("experiment.generator_batch_size", size)
        yield from (("critic.batch", size), ("generator.batch", samples), ("updates.critic", updates))
        yield "updates.steps", steps
        half_life = flat["experiment.ema_half_life"]
        yield "ema.decay", 0.5 ** (samples / half_life) if half_life else flat["experiment.ema_decay"]
        yield "ema.start", flat["experiment.ema_start"]
        yield "ema.buffers", flat.get("experiment.ema_buffers", False)
        for role in ("generator", "critic"):
            optimizer = make(given[f"{role}_optimizer"])
            yield f"{role}.optimizer", given[f"{role}_optimizer"].name
            settings = optimizer.get_config()
            for setting in ("beta_1", "beta_2", "rho", "momentum", "epsilon"):
                if setting in settings:
                    yield f"{role}.{setting}", settings[setting]
            yield f"{role}.learning_rate", self._rate(role, 0)
            yield f"{role}.last_rate", self._rate(role, steps - 1)
            if "beta_1" in settings:
                yield f"{role}.first_epsilon", float(f"{_SMALL * (1 / _first_move(optimizer, _SMALL) - 1):.3g}")
            else:
                yield f"{role}.first_move", float(f"{_first_move(optimizer, 1.0):.4g}")

    def _at(self, name: str, step: int) -> float:
        """The value of a schedule at a step: of "critic.rate", or of a setting such as "constraints.r1.gamma"."""
        if name == "ema.rate":
            decay, start = self["ema.decay"], self["ema.start"]
            average = SimpleNamespace(averaging=decay, ema_start=start, generator_steps=1)
            return float(_average_decay(average, tf.constant(step)))
        role, _, setting = name.rpartition(".")
        if setting == "rate":
            return self._rate(role, step)
        kind, component, setting = name.split(".")
        value = self._experiment.arguments[kind]
        (recipe,) = [one for one in (value if isinstance(value, list) else [value]) if one.name == component]
        return self._scheduled(recipe.arguments[setting], step)

    def _rate(self, role: str, step: int) -> float:
        recipe = self._experiment.arguments[f"{role}_optimizer"]
        if isinstance(given := recipe.arguments.get("learning_rate"), Recipe):
            return self._scheduled(given, step)
        rate = make(recipe).get_config()["learning_rate"]
        if not isinstance(rate, dict):
            return float(rate)
        updates = self._experiment.arguments.get("critic_steps", 5) if role == "critic" else 1
        settings = rate["config"]
        # As training fills it in: the whole run, in updates of this optimizer.
        whole = {**settings, "decay_steps": settings["decay_steps"] or self._experiment.arguments["steps"] * updates}
        schedule = keras.saving.deserialize_keras_object({**rate, "config": whole})
        return float(schedule(step * updates))

    def _scheduled(self, value: Any, step: int) -> float:
        if not isinstance(value, Recipe):
            return float(value)
        return float(make(value).value(tf.constant(float(step)), self._experiment.arguments["steps"]))


def _first_move(template: Any, gradient: float) -> float:
    """How far the first update moves a weight, in learning rates."""
    optimizer = type(template).from_config({**template.get_config(), "learning_rate": 1.0})
    weight = keras.Variable([0.0], dtype="float32")
    optimizer.build([weight])
    optimizer.apply([tf.constant([gradient])], [weight])
    return -float(weight.numpy()[0])
