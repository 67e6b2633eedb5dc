"""Writes a generator for use without ganlab: a folder with samples to check it against and a page on loading it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab import new_folder
from ganlab.engine import Step, Trained, keep_precision, load_trained
from ganlab.errors import ConfigError, IncompatibleError, nearest
from ganlab.files import check_free, local
from ganlab.runs import RunDirectory
from ganlab.telemetry import to_json
from ganlab.version import __version__
from ganlab_export.formats import FORMATS, Format
from ganlab_export.latents import Array
from ganlab_export.readme import readme

INFO, SAMPLES, README = "export.json", "samples.npz", "README.md"
_COUNT = 16

# How far a reloaded generator may be off: float32 rounding, with room for a library that adds in another order.
_TOLERANCE = 1e-5

# The provenance that an export records: no names of machines, people or folders.
_PROVENANCE = ("started", "git", "python", "packages")


def export(
    run: RunDirectory, folder: str | os.PathLike[str], *, format: str = "saved_model", checkpoint: Step = None
) -> dict[str, Any]:
    """Writes the generator of a checkpoint, or its average if the run keeps one, for use without ganlab.

    The folder is written completely or not at all, and holds the model, `export.json`, `README.md`, and `samples.npz`
    with 16 samples of the run's seed and their latent vectors. The model is read back and must draw these samples.

    Args:
        run: A run with a checkpoint, finished or not.
        folder: The folder to write; it must be empty or not exist.
        format: "saved_model", "keras" or "onnx". An ONNX file computes in float32 whatever the run trained in.
        checkpoint: A step that has a checkpoint, "best" by `experiment.keep_best`, or None for the newest.

    Returns:
        The content of export.json.

    Raises:
        RunError: The checkpoint does not exist, or the folder cannot be written.
        IncompatibleError: The generator cannot be written in this format.
        ConfigError: The format is unknown.
        MissingDependencyError: The format needs a package that is not installed.
    """
    target = local(folder)
    if format not in FORMATS:
        raise ConfigError(f"Unknown format {format!r}: choose from {', '.join(FORMATS)}.{nearest(format, FORMATS)}")
    chosen = FORMATS[format]
    check_free(target)
    trained = load_trained(run, checkpoint=checkpoint, precision=chosen.precision)
    keep_precision(trained)
    latents = np.asarray(trained.sample.latents(_COUNT, trained.seed))
    given = trained.sample.given(_COUNT, trained.seed)
    samples = trained.sample.from_latents(latents, **given)
    named = {"latent": latents} if trained.latent_dim else {}
    named |= {"label" if name == "labels" else name: x for name, x in given.items()}
    facts = _facts(run, trained, format, chosen)
    with new_folder(target) as part:
        try:
            chosen.write(trained, part / chosen.file)
            facts["checked"] = _check(chosen, part / chosen.file, named, samples)
        except tf.errors.OpError as error:
            raise OSError(str(error).strip().split("\n")[0]) from error
        with (part / SAMPLES).open("wb") as file:
            np.savez(file, samples=samples, latents=latents, **given)
        (part / INFO).write_text(json.dumps(to_json(facts), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (part / README).write_text(readme(facts), encoding="utf-8")
    return facts


def _facts(run: RunDirectory, trained: Trained, format: str, chosen: Format) -> dict[str, Any]:
    info = run.info
    provenance = info.get("provenance", {})
    return {
        "format": format,
        "model": chosen.file,
        "latent_dim": trained.latent_dim,
        "latent_distribution": "standard normal",
        "classes": trained.sample.classes,
        "label_input": _label_input(trained),
        **({"class_names": info["class_names"]} if info.get("class_names") else {}),
        **(_of_given(trained) if trained.network.given else {}),
        "sample_shape": trained.sample_shape,
        "value_range": [-1.0, 1.0] if len(trained.sample_shape) == 3 else None,
        "precision": trained.precision,
        "trained_in": trained.trained_in,
        "step": trained.step,
        "steps": info.get("steps"),
        "averaged": trained.averaged,
        "samples": {"file": SAMPLES, "count": _COUNT, "seed": trained.seed},
        "written_with": {"ganlab": __version__, "tensorflow": tf.__version__, "keras": keras.__version__},
        "settings": info.get("settings"),
        "provenance": {
            **{name: provenance.get(name) for name in _PROVENANCE},
            "plugins": {name: row.get("version") for name, row in provenance.get("plugins", {}).items()},
        },
        "license": None,
    }


def _of_given(trained: Trained) -> dict[str, Any]:
    """The shapes of conditions and sources, and the arrays of samples.npz in the order of the model's inputs."""
    given = {name: trained.sample.rows[name].shape for name in trained.network.given}
    rest = iter([*["latents"] * bool(trained.latent_dim), "labels"])
    inputs = [x.name if x.name in given else next(rest) for x in trained.network.model.inputs]
    return {"given": given, "inputs": inputs}


def _label_input(trained: Trained) -> str | None:
    """How the Keras model takes labels: as numbers, or as the weights of classes; None without labels."""
    if trained.sample.classes is None:
        return None
    return "numbers" if trained.network.classes is None else "weights"


def _check(chosen: Format, path: Path, arrays: Mapping[str, Array], samples: Array) -> bool:
    """Reads the file back and compares its samples; False if the package that reads it is not installed."""
    generate = chosen.read(path)
    if generate is None:
        return False
    drawn = generate(arrays)
    if not np.allclose(drawn, samples, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True):
        off = float(np.nanmax(np.abs(drawn - samples)))
        raise IncompatibleError(
            f"Read back from {path.name}, the generator draws samples that differ by up to {off:.2g} from its own, so "
            "the file is not kept: a layer's get_config() or its weights do not describe it completely. Use --format "
            "saved_model, which needs neither."
        )
    return True
