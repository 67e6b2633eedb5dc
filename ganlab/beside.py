"""`python -m ganlab.beside`: evaluates the checkpoints of a run that another process trains.

Standard input has a request on each line, first which run it is, then steps and checkpoints; each is answered by a line
of standard output. Other lines name the plugin whose code begins to run, and report its end. The process exits when
standard input ends.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganlab.errors import GanlabError
from ganlab.plugins import blame
from ganlab.plugins.import_guard import no_greetings, quiet_native_stderr
from ganlab.runs.experiment_source import use_plugins

# How much lower than the trainer's the process's priority is.
_NICE = 10


def main() -> None:
    """Answers requests until there are no more."""
    # What components print is not an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.nice(_NICE)
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    evaluate = None

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    def tell(code: blame.Running | None) -> None:
        if threading.current_thread() is threading.main_thread():  # which answers too: lines do not mix
            say({"running": None if code is None else [code.part, code.method]})

    blame.listen(tell)
    while True:
        request = requests.get()
        try:
            if evaluate is None:
                evaluate, found = _evaluator(request), {}
            else:
                found = evaluate(int(request["step"]), Path(request["checkpoint"]))
        except GanlabError as error:
            found = {"error": str(error)}
        except Exception as error:
            found = {"error": f"The evaluation beside training failed: {type(error).__name__}: {error}"}
        say(found)


def _read(requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    for text in sys.stdin.buffer:
        requests.put(json.loads(text))
    os._exit(0)  # whatever it evaluates, nobody waits for


def _evaluator(request: dict[str, Any]) -> Any:
    """What evaluates a step, given its checkpoint, with all that stays from one evaluation to the next."""
    local = request["plugin_file"]
    use_plugins(request["no_plugin"], Path(local) if local else None)
    no_greetings()
    with quiet_native_stderr():
        import tensorflow as tf

    from ganlab.composition import compose
    from ganlab.run import Run
    from ganlab.telemetry.jsonl import to_json
    from ganlab.training.checkpoints import Checkpoint, restore
    from ganlab.training.evaluation import Evaluation
    from ganlab.training.graph.state import TrainingState

    run = Run(request["run"])
    recipe = run.recipe()
    # One device, whatever the run trains on.
    arguments = {**recipe.arguments, "strategy": tf.distribute.get_strategy(), "microbatches": 1}
    experiment = compose(replace(recipe, arguments=arguments))
    state = TrainingState(experiment)
    evaluation = Evaluation(experiment, state)

    def evaluated(step: int, path: Path) -> dict[str, Any]:
        restore(Checkpoint(path, step), state.variables())
        state.step = step
        found = evaluation(step, run)
        return {
            "figures": to_json(found.figures),
            "records": to_json([(record.tag, record.reduced) for record in found.records]),
            "picture": None if found.picture is None else base64.b64encode(found.picture).decode(),
            "complaints": evaluation.state(),
        }

    return evaluated


if __name__ == "__main__":
    main()
