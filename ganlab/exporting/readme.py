"""Writes the page beside an exported generator: what it is and how to load it."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Any

_PAGE = Template("""\
# A generator

It makes samples of shape $sample_shape from latent vectors of $latent_dim standard normal numbers$asked, and was
trained by ganlab $ganlab to step $step of $steps. `export.json` lists the settings and the versions of packages.

## Load it

$needs In this folder:

```python
$code
```

$more## Before you pass it on

`samples.npz` holds $count samples of the seed $seed and their latent vectors, to check a copy against, as above.
`license` in `export.json` is empty: state there what others may do with the model. Its settings may name your folders.
""")

_NEEDS = {
    "saved_model": "TensorFlow alone is needed (written with $tensorflow): `pip install tensorflow`.",
    "keras": "TensorFlow and Keras are needed (written with $tensorflow and $keras): `pip install tensorflow`.",
    "onnx": "Any ONNX runtime takes it: `pip install onnxruntime`.",
}

_CODE = {
    "saved_model": """\
import numpy as np
import tensorflow as tf

generator = tf.saved_model.load("generator")
kept = np.load("samples.npz")
samples = generator(kept["latents"]$kept_labels)
np.testing.assert_allclose(samples, kept["samples"], rtol=1e-5, atol=1e-5)
more = generator.sample(64, 1$one_label)["samples"]""",
    "keras": """\
import keras
import numpy as np

generator = keras.saving.load_model("generator.keras")
kept = np.load("samples.npz")
samples = generator.predict($keras_kept)
np.testing.assert_allclose(samples, kept["samples"], rtol=1e-5, atol=1e-5)
latent = np.random.default_rng(1).standard_normal((64, $latent_dim), np.float32)
more = generator.predict($keras_more)""",
    "onnx": """\
import numpy as np
import onnxruntime

generator = onnxruntime.InferenceSession("generator.onnx")
kept = np.load("samples.npz")
(samples,) = generator.run(["samples"], {"latent": kept["latents"]$onnx_kept})
np.testing.assert_allclose(samples, kept["samples"], rtol=1e-5, atol=1e-5)
latent = np.random.default_rng(1).standard_normal((64, $latent_dim), np.float32)
(more,) = generator.run(["samples"], {"latent": latent$onnx_more})""",
}

_MORE = {
    "saved_model": """\
`generator.sample(n, seed$label_name)` draws what `ganlab sample --seed$label_option` draws: `samples` and their
`latents`. For servers it has the signatures `serving_default` (`latent`$and_label to `samples`) and `sample` (`n`,
`seed`$and_label, int64 scalars, to both).
""",
    "keras": "",
    "onnx": "The input `latent` and the output `samples` are float32, for any number of rows.\n",
}

_IMAGES = """\
Images range from -1 (black) to 1 (white): `((samples + 1) * 127.5).round().clip(0, 255)` are pixels of 8 bits.
"""

_BFLOAT16 = {
    "saved_model": """\
Layers compute in bfloat16, which has two to three digits; samples on another kind of processor may agree no further.
""",
    "keras": """\
Layers compute in bfloat16, which has two to three digits; samples on another kind of processor may agree no further.
The same holds for a direct call, `generator(latents)`, which rounds after every operation; `predict` computes as
training did.
""",
    "onnx": """\
It was trained in bfloat16 and computes in float32 here, as for `samples.npz`: two to three digits agree with the run.
""",
}


def readme(info: Mapping[str, Any]) -> str:
    """The page for the content of an export.json."""
    name, shape = info["format"], tuple(info["sample_shape"])
    labels = _labels(info)
    more = [Template(_MORE[name]).substitute(labels)] if _MORE[name] else []
    more += [_IMAGES] if info["value_range"] else []
    more += [_BFLOAT16[name]] if info["trained_in"] != "float32" else []
    facts = {**info, **info["written_with"], **info["samples"], "sample_shape": str(shape), **labels}
    return _PAGE.substitute(
        facts,
        needs=Template(_NEEDS[name]).substitute(facts),
        code=Template(_CODE[name]).substitute(facts),
        more="".join(f"{text}\n" for text in more),
    )


def _labels(info: Mapping[str, Any]) -> dict[str, str]:
    """The page's sentences on labels, by the names of its gaps; empty for an unconditional generator."""
    names = ("asked", "kept_labels", "one_label", "onnx_kept", "onnx_more", "label_name", "label_option", "and_label")
    texts = dict.fromkeys(names, "")
    texts |= {"keras_kept": 'kept["latents"]', "keras_more": "latent"}
    classes = info.get("classes")
    if not classes:
        return texts
    last = classes - 1
    one_hot = f"np.eye({classes}, dtype=np.float32)"
    weights = info.get("label_input") == "weights"
    kept = f'{one_hot}[kept["labels"]]' if weights else 'kept["labels"]'
    more = f"{one_hot}[np.full(64, {last})]" if weights else f"np.full(64, {last})"
    return {
        "asked": f" and labels from 0 to {last}",
        "kept_labels": ', kept["labels"]',
        "one_label": f", {last}",
        "onnx_kept": ', "label": kept["labels"]',
        "onnx_more": f', "label": np.full(64, {last})',
        "label_name": ", label",
        "label_option": " --label",
        "and_label": ", `label`",
        "keras_kept": f'[kept["latents"], {kept}]',
        "keras_more": f"[latent, {more}]",
    }
