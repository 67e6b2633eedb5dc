"""Arguments of other types than the public functions take: each is refused in a sentence that has the argument."""

import numpy as np
import pytest

import ganlab


class Mine(ganlab.Constraint):
    pass


def arrays(**arguments):
    return ganlab.component("datasets", "arrays")(**arguments)


# No call gets as far as TensorFlow or a folder.
CALLS = {
    "train: number": (lambda: ganlab.train(5, "run"), "experiment = 5 must be an experiment"),
    "train: part": (lambda: ganlab.train(Mine(), "run"), "experiment = .*Mine object .* must be an experiment"),
    "train: nothing": (lambda: ganlab.train([], "run"), r"experiment = \[\] must be an experiment"),
    "train: name": (lambda: ganlab.train("quickstar", "run"), "'quickstar' not found. Did you mean 'quickstart'"),
    "train: params": (lambda: ganlab.train("quickstart", "run", params=5), "params = 5 must be a text"),
    "run": (lambda: ganlab.Run(None), "path = None must be a path"),
    "sweep: experiment": (lambda: ganlab.sweep(Mine()), "gin = .*Mine object .* must be a path"),
    "sweep: object": (
        lambda: ganlab.sweep("quickstart", grid={"experiment.constraints": [[Mine()]]}),
        "Mine object .* was made in Python, and the trials of a sweep are processes of their own",
    ),
    "sweep: array": (
        lambda: ganlab.sweep("quickstart", grid={"datasets.arrays.path": [np.zeros(2)]}),
        r"array\(\[0., 0.\]\) was made in Python",
    ),
    "sweep: component": (
        lambda: ganlab.sweep("quickstart", grid={"experiment.dataset": [ganlab.component("datasets", "digits")]}),
        "component datasets.digits> was made in Python",
    ),
    "sweep: options": (lambda: ganlab.sweep("quickstart", launcher_options={"nice": Mine()}), "Mine .* made in Python"),
    "sweep: grid": (lambda: ganlab.sweep("quickstart", grid=["x"]), r"grid = \['x'\] must be a dict"),
    "sweep: jobs": (lambda: ganlab.sweep("quickstart", jobs="2"), "jobs = '2' must be a whole number"),
    "sweep: timeout": (lambda: ganlab.sweep("quickstart", timeout="1h"), "timeout = '1h' must be a number above 0"),
    "sweep: objective": (lambda: ganlab.sweep("quickstart", objective=5), "objective = 5 must be a text or None"),
    "sweep: runs": (lambda: ganlab.sweep("quickstart", runs=5), "runs = 5 must be a path"),
    "verify": (lambda: ganlab.verify(Mine()), "gin = .*Mine object .* must be a path"),
    "verify: iterations": (lambda: ganlab.verify("quickstart", iterations="5"), "iterations = '5' must be a whole"),
    "verify: topology": (lambda: ganlab.verify("quickstart", topology=5), "Unknown TPU '5' in the topology 5"),
    "benchmark: suite": (lambda: ganlab.benchmark(5), "suite = 5 must be a path"),
    "benchmark: object": (lambda: ganlab.benchmark(constraints=[Mine()]), "constraints = .* must be a text, or a list"),
    "benchmark: jobs": (lambda: ganlab.benchmark(jobs=1.5), "jobs = 1.5 must be a whole number"),
    "compare": (lambda: ganlab.compare([Mine()]), "paths = .* must be a path, or a list of paths"),
    "component: name": (lambda: ganlab.component("losses", Mine), "has a kind and a name, for example 'losses'"),
    "plugin file": (lambda: ganlab.use_plugin_file(5), "path = 5 must be a path"),
    "arrays: array": (
        lambda: arrays(path=np.zeros((100, 2))),
        r"datasets.arrays.path is an array of shape \(100, 2\), and must be a text, for example the path of a file. "
        r"Save it with numpy.save and give the file's path, or write a ganlab.Dataset that holds it.",
    ),
    "arrays: labels": (lambda: arrays(path="x.npz", labels=np.zeros(9)), r"an array of shape \(9,\), and must"),
    "images: list": (
        lambda: ganlab.component("datasets", "image_folder")(path=["a", "b"]),
        "datasets.image_folder.path is of type list, and must be a text",
    ),
    "number": (
        lambda: ganlab.component("constraints", "gradient_penalty")(weight=np.zeros(3)),
        r"weight = array\(.*\) must be float, not ndarray",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_of_another_type_is_refused_by_name(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    do, message = CALLS[call]
    with pytest.raises(ganlab.GanlabError, match=f"(?s){message}"):
        do()
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_as_good_as_a_text(tmp_path):
    np.save(tmp_path / "points.npy", np.zeros((4, 2), np.float32))
    assert arrays(path=tmp_path / "points.npy").size == 4
