"""Updates of variables wait for the reads before them, also after TensorFlow has optimized the graph."""

import contract_two as plugin
import keras
import pytest
from small import Layers, constraint, normalized_critic, normalized_generator, small
from tensorflow.python.eager import context

import ganlab
from ganlab.training.graph import update
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

_PASSING = ("Identity", "Enter", "Switch", "NextIteration", "Exit", "Merge")


def linear(x):
    return keras.layers.Dense(1)(x)


QUICK = ("linear critic",)
CASES = {
    # No gradient of the generator's last layer depends on its weights.
    "linear critic": lambda: {"architecture": Layers(critic=linear)},
    "linear critic, two updates": lambda: {"architecture": Layers(critic=linear), "critic_steps": 2},
    "adam": lambda: {
        "architecture": Layers(critic=linear),
        "optimizer": ganlab.component("optimizers", "adam")(learning_rate=1e-3),
        "ema_decay": 0.9,
    },
    "penalty": lambda: {"constraints": [constraint("gradient_penalty")]},
    "clipping": lambda: {"architecture": Layers(critic=linear), "constraints": [constraint("weight_clipping")]},
    "spectral norm": lambda: {"constraints": [constraint("spectral_norm")]},
    "normalization": lambda: {"architecture": Layers(generator=normalized_generator, critic=normalized_critic)},
    "contract 2": lambda: {**plugin.parts(), "loss": plugin.Everything()},
    "microbatches": lambda: {**plugin.parts(), "loss": plugin.Local(), "microbatches": 3},
}


def optimized(trainer):
    """The nodes, by name, of the graph that runs."""
    context.enable_run_metadata()
    try:
        trainer.train(2)
        graphs = context.export_run_metadata().function_graphs
    finally:
        context.disable_run_metadata()
    return {n.name: n for n in max((g.post_optimization_graph.node for g in graphs), key=len)}


def source(name):
    return name.lstrip("^").split(":")[0]


def unordered(nodes):
    """The updates and the other operations on the same variable, in the training loop, that may run in any order."""

    def variable(name):
        while nodes[name].op in _PASSING:
            name = source(nodes[name].input[0])
        return name

    users, following = {}, {}
    for name, node in nodes.items():
        uses = node.op == "ReadVariableOp" or "Assign" in node.op or node.op.startswith("Resource")
        if uses and "while/body" in name:
            users.setdefault(variable(source(node.input[0])), []).append(name)
        if node.op != "NextIteration":
            for given in node.input:
                following.setdefault(source(given), set()).add(name)
    assert len(users) >= 12  # of each replica at least the weights of three layers and their biases
    after = {name: reached(name, following) for names in users.values() for name in names}
    return [
        (update, other)
        for names in users.values()
        for update in names
        for other in names
        if nodes[update].op != "ReadVariableOp" and update != other
        if other not in after[update] and update not in after[other]
    ]


def reached(name, following):
    found, left = set(), [name]
    while left:
        fresh = following.get(left.pop(), set()) - found
        found |= fresh
        left += fresh
    return found


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_every_update_is_ordered_against_every_read(name):
    assert unordered(optimized(Trainer(small(2, **CASES[name]())))) == []


@pytest.mark.slow
def test_the_order_is_lost_without_the_core(monkeypatch):
    # If this fails, TensorFlow keeps the order itself, and ganlab.training.graph.ordering may go.
    monkeypatch.setattr(update, "after_reads", lambda gradients, values: gradients)
    found = unordered(optimized(Trainer(small(2, architecture=Layers(critic=linear)))))
    assert {tuple(name.split("/")[-1].split("_")[0] for name in pair) for pair in found} == {
        ("AssignSubVariableOp", "ReadVariableOp")
    }
