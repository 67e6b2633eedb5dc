"""Prints figures of the authors' programs, as far as these are installed, in a process without TensorFlow.

prdc is in the package index; fld, dgm-eval and the torch-fidelity that has `mind` are in their repositories alone.
"""

import contextlib
import importlib
import json
import sys

import numpy as np


def rows():
    """Training examples, others, and samples of which 60 are nearly copies: of eight features, rounded to float32."""
    random = np.random.default_rng(43)
    mixing = random.normal(size=(8, 8)) / 2 + np.eye(8)
    train, held_out, generated = (random.normal(size=(n, 8)) @ mixing for n in (400, 300, 350))
    generated = 0.9 * generated + 0.2
    generated[:60] = train[:60] + 0.02 * random.normal(size=(60, 8))
    return tuple(x.astype(np.float32).astype(np.float64) for x in (train, held_out, generated))


def tensors(*arrays):
    return map(importlib.import_module("torch").tensor, arrays)


TRAIN, HELD_OUT, MADE = rows()
PAIR = MADE[:300], HELD_OUT
MIND = {"mind_num_projections": 10, "cuda": False, "rng_seed": 0, "verbose": False}
# By measure, the module and the call.
PROGRAMS = {
    "density": ("prdc", lambda m: m.compute_prdc(HELD_OUT, PAIR[0], 5)["density"]),
    "vendi_score": ("dgm_eval.metrics.vendi", lambda m: m.compute_vendi_score(MADE)),
    "authentic": ("dgm_eval.metrics.authpct", lambda m: m.compute_authpct(TRAIN, MADE)),
    "gap": ("fld.metrics.FLD", lambda m: m.FLD("gap").compute_metric(*tensors(TRAIN, HELD_OUT, MADE))),
    "mind": (
        "torch_fidelity.metric_mind",
        lambda m: m.mind_features_to_metric(*tensors(*(x[:, :1] for x in PAIR)), **MIND)["monge_inception_distance"],
    ),
}

if __name__ == "__main__":
    figures = {}
    for name, (module, call) in PROGRAMS.items():
        with contextlib.suppress(ImportError), contextlib.redirect_stdout(sys.stderr):
            figures[name] = float(call(importlib.import_module(module)))
    print(json.dumps(figures))
