"""The loop of tf_loop.py with each update compiled by XLA, as a careful user would have it on a GPU.

    python tools/peers/tf_compiled.py mlp --device gpu

See serving.py for its options and answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers import serving, tf_loop


def trainer(asked: serving.Asked) -> tf_loop.Loop:
    """Trains the model for the requested iterations."""
    tf_loop.prepare(asked)
    return tf_loop.Loop(tf_loop.MODELS[asked.kind](), compiled=True)


if __name__ == "__main__":
    serving.serve(trainer)
