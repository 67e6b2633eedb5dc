"""Errors in a plugin's code, and messages within the pages that TensorFlow writes around them."""

import types

import pytest

import ganlab
from ganlab.plugins import manager as plugins
from ganlab.plugins.plugin_errors import plugin_code, sentence

# Messages of tensorflow 2.21, shortened.
ASSERTED_IN_DATA = """Graph execution error:

Detected at node Assert/Assert defined at (most recent call last):
<stack traces unavailable>
Error in user-defined function passed to ParallelMapDatasetV2:1 transformation with iterator: Iterator::Root: \
assertion failed: [datasets.image_folder: cannot read or decode a[1].png. Mend it.]
\t [[{{node Assert/Assert}}]]
\t [[while/body/_1/while/IteratorGetNext]] [Op:__inference__run_1299]"""
ASSERTED = """Graph execution error:

Detected at node while/assert_less/Assert defined at (most recent call last):
  File "/a/plugin.py", line 36, in penalty

assertion failed: [negative] [Condition x < y did not hold element-wise:] [x (while/strided_slice_10:0) = ] [[-0.98]]
\t [[{{node while/assert_less/Assert}}]] [Op:__inference__run_6854]"""
RAISED = """Graph execution error:

Detected at node PyFunc defined at (most recent call last):
<stack traces unavailable>
2 root error(s) found.
  (0) UNKNOWN:  Error in user-defined function passed to ParallelMapDatasetV2:52 transformation with iterator: \
Iterator::Root::ParallelMapV2: IncompatibleError: images of shapes (1,) and (2,)
Traceback (most recent call last):

  File "/tmp/script_ops.py", line 269, in __call__
    ret = func(*args)

ganlab.errors.IncompatibleError: images of shapes (1,) and (2,)


\t [[{{node PyFunc}}]]"""
GATHERED = """Graph execution error:

Detected at node while/GatherV2 defined at (most recent call last):
  File "/a/plugin.py", line 32, in examples

indices[0] = 100 is not in [0, 4)
\t [[{{node while/GatherV2}}]] [Op:__inference__run_5646]"""
EAGER = "{{function_node __wrapped__Mul_device_/job:localhost/replica:0/task:0/device:CPU:0}} Incompatible shapes: [3] \
vs. [4] [Op:Mul] name: "
AUTOGRAPH = """in user code:

    File "/a/plugin.py", line 7, in penalty  *
        return tf.reshape(x, [5])

    ValueError: Cannot reshape a tensor with 12 elements to shape [5]
"""
KERAS = "Exception encountered when calling Dense.call().\n\n\x1b[1mbad\x1b[0m\n\nArguments received by Dense.call():"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError(ASSERTED_IN_DATA), "datasets.image_folder: cannot read or decode a[1].png. Mend it."),
        (RuntimeError(ASSERTED), "negative"),
        (RuntimeError(RAISED), "IncompatibleError: images of shapes (1,) and (2,)"),
        (RuntimeError(GATHERED), "RuntimeError: indices[0] = 100 is not in [0, 4)"),
        (RuntimeError(EAGER), "RuntimeError: Incompatible shapes: [3] vs. [4]"),
        (ValueError(AUTOGRAPH), "ValueError: Cannot reshape a tensor with 12 elements to shape [5]"),
        (ValueError(KERAS), "ValueError: Exception encountered when calling Dense.call()."),
        (KeyError("weight"), "KeyError: 'weight'"),
        (
            TypeError("<tf.Tensor 'x:0'> is out of scope and cannot be used here. Use return values\nDefined here:\n"),
            "it uses a tensor that was made in another call. Store none on self: what is kept between calls is a "
            "state, which initial_state begins and advance continues",
        ),
        (ValueError("first\nsecond"), "ValueError: first\nsecond"),
        (AssertionError(), "AssertionError"),
    ],
)
def test_sentence_extracts_the_message_of_an_error(error, said):
    assert sentence(error) == said


def module(name, source):
    made = types.ModuleType(name)
    exec(compile(source, f"/somewhere/{name}.py", "exec"), vars(made))
    return made


def test_plugin_error_names_the_component_and_line():
    helper = "import json\n\ndef read(text):\n    return json.loads(text)\n\ndef penalty():\n    return read('?')\n"
    core = module(
        "ganlab.core", "def call(plugin):\n    with plugin_code('constraints.c', 'penalty'):\n        plugin()\n"
    )
    core.plugin_code = plugin_code
    with pytest.raises(ganlab.PluginError) as caught:
        core.call(module("mine", helper).penalty)
    # Line 4 of the plugin, not the line in json that raised.
    assert str(caught.value) == (
        "constraints.c failed in penalty: JSONDecodeError: Expecting value: line 1 column 1 (char 0) (mine.py:4)"
    )
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("error", [ganlab.ConfigError("mine"), ganlab.TrainingFailedError("mine"), KeyboardInterrupt()])
def test_ganlabs_own_errors_pass_unchanged(error):
    with pytest.raises(type(error)) as caught, plugin_code("constraints.c", "penalty"):
        raise error
    assert caught.value is error


class Plugin:
    @ganlab.hookimpl
    def ganlab_losses(self):
        return {"odd": odd}


def odd(*, margin: float, power: float = 1.0) -> ganlab.Loss:
    """Fails."""
    raise ValueError(f"no power {power}")


@pytest.fixture
def factory(fresh_plugins):
    found = plugins.use(plugins.Plugins())
    found.add(plugins.Plugin("tests", "tests", ""), Plugin)
    return ganlab.component("losses", "odd")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"margn": 1.0}, ganlab.ConfigError, r"^losses\.odd has no parameter 'margn'\. Did you mean 'margin'\?$"),
        ({"power": 2.0}, ganlab.ConfigError, r"^losses\.odd needs margin, which has no default\."),
        ({"margin": 1.0}, ganlab.PluginError, r"^losses\.odd failed in its factory: ValueError: no power 1\.0 \(test_"),
    ],
)
def test_factory_errors_are_reported(factory, arguments, kind, message):
    with pytest.raises(kind, match=message):
        factory(**arguments)


MULTILINE_IN_GRAPH = (
    'in user code:\n\n    File "/a/plugin.py", line 7, in penalty  *\n        raise ValueError(text)\n\n'
    "    ValueError: first\n    second\n    third\n"
)


def test_sentence_keeps_every_line_of_a_message():
    assert sentence(ValueError(MULTILINE_IN_GRAPH)) == "ValueError: first\nsecond\nthird"
    assert sentence(ValueError("first\n\n  second")) == "ValueError: first\n\n  second"
    assert len(sentence(ValueError("line\n" * 10_000))) < 500
