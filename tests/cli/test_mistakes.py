"""Every mistake possible in an experiment file or an override, with the exact message that a user sees."""

import re

import pytest

# Lines added to a complete experiment of six lines, and the message behind "exp.gin:", of line 7 if it names none.
PENALTY = "experiment.constraints = [@penalty()]"
FORM = "A line has the form NAME = VALUE, with one value."
LISTED = "Names have the form KIND.NAME; 'ganlab plugins' lists them."

NAMES = {
    "experiment.constraints = [@constraints.penatly()]": (
        "Unknown component constraints.penatly. Did you mean 'constraints.penalty'? Known constraints: every, penalty."
    ),
    "experiment.constraints = [\n  @penalty(),\n  @penatly(),\n]": (
        f"Unknown component 'penatly'. Did you mean 'penalty'? {LISTED}"
    ),
    "experiment.loss = @los.hinge()": (
        "Unknown kind of component 'los'. Did you mean 'losses'? Kinds: constraints, architectures, strategies, "
        "datasets, losses, augmentations, schedules, evaluators, diagnostics, features, optimizers, launchers, "
        "searches."
    ),
    "experiment.constraints = [@constraints.hinge()]": (
        "Unknown component constraints.hinge. Did you mean 'losses.hinge'? Known constraints: every, penalty."
    ),
    "experiment.dataset = @points()": "'points' is ambiguous: write datasets.points or losses.points.",
    "experiment.loss = @experiment()": "'experiment' is the experiment itself and cannot be one of its parts.",
    "experiment.stepz = 3": "experiment has no parameter 'stepz'. Did you mean 'steps'?",
    "exprment.steps = 3": f"Unknown component 'exprment'. Did you mean 'experiment'? {LISTED}",
    "losses.hinge.qqq = 1": "losses.hinge has no parameter 'qqq'. Its parameters: margin.",
    "losses.plain.qqq = 1": "losses.plain has no parameter 'qqq'. Its parameters: none.",
    "constraints.penalty.wieght = 1": "constraints.penalty has no parameter 'wieght'. Did you mean 'weight'?",
    "experiment:\n  steps = 3\n  stepz = 4": "9: experiment has no parameter 'stepz'. Did you mean 'steps'?",
    "constraints.penalty = 3": (
        "constraints.penalty = ... sets a component, not a parameter of one. Write constraints.penalty.PARAMETER = "
        "..., or experiment.constraints = ... to choose it."
    ),
    "experiment.critic_optimizer.beta = 0.5": (
        "'experiment.critic_optimizer' is not a component. Set experiment.critic_optimizer as a whole, and a "
        "component's parameters by the component's own name: KIND.NAME.PARAMETER = ..."
    ),
    "experiment.loss = @losses.hinge": "@losses.hinge names a component without making it. Write @losses.hinge().",
}

SYNTAX = {
    "experiment.jit = off": "experiment.jit = off is not a value. Write 'off' in quotes if it is text.",
    "experiment.jit = true  # sure": "experiment.jit = true is not a value. Write True.",
    "experiment.ema_decay = nan": "experiment.ema_decay = nan is not a value. A setting must be a number.",
    "experiment.ema_decay = inf": "experiment.ema_decay = inf is not a value. Write 1e999 for infinity.",
    "datasets.points.path = data/x.npy": (
        "datasets.points.path = data/x.npy is not a value. Write 'data/x.npy' in quotes if it is text."
    ),
    "experiment.loss = losses.hinge()": (
        "experiment.loss = losses.hinge() is not a value. Write @losses.hinge() to use that component."
    ),
    "experiment.constraints = [\n  @penalty(),\n  off,\n]": (
        "9: off is not a value. Write 'off' in quotes if it is text."
    ),
    "experiment.seed =": f"this is not gin: 'experiment.seed =' (the value is missing). {FORM}",
    "experiment.steps 3": (
        f"this is not gin: 'experiment.steps 3' (Couldn't parse statement, expected ':' or '='). {FORM}"
    ),
    "experiment.steps = 2*3": f"this is not gin: 'experiment.steps = 2*3' (Expected newline). {FORM}",
    "experiment.jit = 'off": f'this is not gin: "experiment.jit = \'off" (a quote is not closed). {FORM}',
    "experiment.constraints = [@penalty(),": (
        "8: the file ends too early: EOF in multi-line statement. Close every bracket and quote."
    ),
    "import mine": (
        "'import mine' is not supported, because experiment files are data. Plugins are found automatically: install "
        "one with pip, or put a ganlab_plugins.py beside the file."
    ),
}

KINDS = {
    "experiment.loss = @datasets.points()": (
        "experiment.loss = @datasets.points() is one of the datasets, but must be one of the losses, for example "
        "experiment.loss = @losses.hinge()"
    ),
    "experiment.loss = 'hinge'": "experiment.loss = 'hinge' must be a component. Write @losses.hinge().",
    "experiment.loss = 3": (
        "experiment.loss = 3 must be one of the losses, for example experiment.loss = @losses.hinge()"
    ),
    "experiment.loss = [@hinge()]": (
        "experiment.loss = [@losses.hinge()] must be one component, not a list. Write @losses.hinge()."
    ),
    "experiment.dataset = 3": (  # the suggested component needs no settings
        "experiment.dataset = 3 must be one of the datasets, for example experiment.dataset = @datasets.points()"
    ),
    "experiment.constraints = @penalty()": (
        "experiment.constraints = @constraints.penalty() must be a list. Write [@constraints.penalty()]."
    ),
    "experiment.evaluators = 'count'": (
        "experiment.evaluators = 'count' must be a list of evaluators. Write [@evaluators.count()]."
    ),
    "experiment.constraints = [@hinge()]": (
        "experiment.constraints = [@losses.hinge()] is one of the losses, but must be one of the constraints, for "
        "example experiment.constraints = [@constraints.penalty()]"
    ),
    "c = @hinge()\nexperiment.dataset = %c": (
        "8: experiment.dataset = %c (that is @losses.hinge()) is one of the losses, but must be one of the datasets, "
        "for example experiment.dataset = @datasets.points()"
    ),
    "experiment.constraints = [@every()]\nevery.inner = @losses.hinge()": (
        "8: constraints.every.inner = @losses.hinge() must be Constraint, not Hinge."
    ),
}

TYPES = {
    "experiment.steps = '100'": "experiment.steps = '100' must be int, not str. Write 100 without quotes.",
    "experiment.steps = 1e4": "experiment.steps = 10000.0 must be int, not float. Write 10000.",
    "experiment.steps = True": "experiment.steps = True must be int, not bool.",
    "experiment.steps = None": "experiment.steps = None must be int, not None.",
    "architectures.small.residual = 1": "architectures.small.residual = 1 must be bool, not int.",
    "architectures.small.options = {'a': True}": (
        "architectures.small.options = {'a': True} must be dict[str, float] | None."
    ),
    f"{PENALTY}\npenalty.weight = 'ten'": "8: constraints.penalty.weight = 'ten' must be float, not str.",
    f"{PENALTY}\npenalty.sides = 'twoo'": (
        "8: constraints.penalty.sides = 'twoo' must be one of 'one', 'two'. Did you mean 'two'?"
    ),
    "experiment.jit = 'of'": "experiment.jit = 'of' must be one of 'auto', 'on', 'off', 'step'. Did you mean 'off'?",
    "datasets.points.labels = 3": "datasets.points.labels = 3 must be list[int] | None, not int. Write [3].",
    "datasets.points.labels = [1, 'a']": "datasets.points.labels = [1, 'a'] must be list[int] | None.",
    "datasets.points.path = 3": "datasets.points.path = 3 must be str, not int. Write '3' in quotes.",
    "n = 'x'\nexperiment.steps = %n": "8: experiment.steps = %n (that is 'x') must be int, not str.",
}

RANGES = {
    "experiment.steps = 0": "experiment.steps = 0 must be a whole number of at least 1 and below 2**31.",
    "experiment.seed = -1": "experiment.seed = -1 must be a whole number of at least 0 and below 2**31.",
    "experiment.ema_decay = 1e999": "experiment.ema_decay = inf must be at least 0 and below 1.",
}

MISSING = {
    "experiment.dataset = @datasets.table()": "datasets.table needs path. Add a line datasets.table.path = ...",
    "experiment.steps = %n": "the macro %n is not defined. Add a line n = VALUE.",
    "count = 3\nexperiment.seed = %count\nexperiment.steps = %cuont": (
        "9: the macro %cuont is not defined. Did you mean 'count'? Add a line cuont = VALUE."
    ),
    "n = %m\nm = [%n]\nexperiment.steps = %n": "the macro %m is defined by itself. Give it a value of its own.",
    "experiment.constraints = [@every()]\nevery.inner = @every()": (
        "8: constraints.every would be made from itself, endlessly. Use another component."
    ),
    "include 'nothing.gin'": (
        "include 'nothing.gin': file not found beside exp.gin, among the shipped files or in the working directory."
    ),
    "include 'exp.gin'": "include 'exp.gin' is circular: exp.gin -> exp.gin.",
}

UNUSED = {
    "constraints.penalty.weight = 1.0": (
        "constraints.penalty.weight = 1.0 has no effect: nothing in the experiment uses constraints.penalty. Use "
        "@constraints.penalty() or remove the line."
    ),
    "n = 3": "the macro n = 3 is never used. Write %n where it is wanted, or remove it.",
    "steps = 3": (
        "the macro steps = 3 is never used. Did you mean experiment.steps? Write %steps where it is wanted, or remove "
        "it."
    ),
    "critic/adam.beta = 0.1": (
        "critic/optimizers.adam.beta = 0.1 has no effect: optimizers.adam is not used in the scope 'critic'. It is "
        "used without a scope."
    ),
    "experiment.steps = 1\nexperiment.steps = 2": (
        "experiment.steps = 1 has no effect: exp.gin:8 sets it again. Remove one of them."
    ),
    "experiment.constraints = [@a/penalty()]\na/penalty.weight = 2.0\npenalty.weight = 3.0": (
        "9: constraints.penalty.weight = 3.0 has no effect: every use of constraints.penalty sets it in a scope, at "
        "exp.gin:8."
    ),
}

FILES = [NAMES, SYNTAX, KINDS, TYPES, RANGES, MISSING, UNUSED]


@pytest.mark.parametrize(("lines", "message"), [item for table in FILES for item in table.items()])
def test_mistake_in_a_file(mistake, here, minimal, monkeypatch, lines, message):
    monkeypatch.setattr("ganlab.config.files.shipped_folder", lambda: None)
    # Setting a parameter twice in one file is another mistake, so the new lines replace the old ones.
    replaced = tuple(f"{name} =" for name in re.findall(r"^experiment\.\w+", lines, re.MULTILINE))
    kept = [f"# {line}" if line.startswith(replaced) else line for line in minimal.splitlines()]
    (here / "exp.gin").write_text("\n".join([*kept, lines, ""]))
    assert mistake("run", "--gin", "exp.gin") == f"exp.gin:{message if message[0].isdigit() else f'7: {message}'}"


PARAMS = {
    "experiment.jit=of": "experiment.jit = 'of' must be one of 'auto', 'on', 'off', 'step'. Did you mean 'off'?",
    "experiment.jit": "must have the form NAME=VALUE, for example 'experiment.steps=100'.",
    "experiment.jit=": "must have the form NAME=VALUE, for example 'experiment.steps=100'.",
    "experiment.seed=1\nexperiment.steps=2": "must be one NAME=VALUE.",
    "experiment.stepz=3": "experiment has no parameter 'stepz'. Did you mean 'steps'?",
    "experiment.steps=ten": "experiment.steps = ten must be int, not str.",
    "experiment.steps=0": "experiment.steps = 0 must be a whole number of at least 1 and below 2**31.",
    "experiment.loss=hinge": "experiment.loss = hinge must be a component. Write @losses.hinge().",
    "experiment.loss=losses.hinge()": "experiment.loss = losses.hinge() must be a component. Write @losses.hinge().",
    "n=3": "the macro n = 3 is never used. Write %n where it is wanted, or remove it.",
    "n=word": "n = word is not a value. Write 'word' in quotes if it is text.",
    "strategies.many.replicas=4": (
        "strategies.many.replicas = 4 has no effect: nothing in the experiment uses strategies.many. Use "
        "@strategies.many() or remove the line."
    ),
}


@pytest.mark.parametrize(("param", "message"), PARAMS.items())
def test_mistake_in_a_param(mistake, here, minimal, param, message):
    (here / "exp.gin").write_text(minimal)
    assert mistake("run", "--gin", "exp.gin", "--param", param) == f"--param {param!r}: {message}"


# Files, in which {} stands for a sound experiment of six lines.
_INCLUDING = {"exp.gin": "{}include 'parts/a.gin'\n", "parts/a.gin": "include 'b.gin'\n"}
FILES = {
    "exp.gin: experiment needs loss, critic_optimizer, which no line sets. Add for example: experiment.loss = "
    "@losses.hinge(); experiment.critic_optimizer = @optimizers.adam()": {
        "exp.gin": "experiment.dataset = @datasets.points()\nexperiment.architecture = @small()\n"
        "experiment.strategy = @one()\nexperiment.generator_optimizer = @adam()\n"
    },
    "parts/b.gin:2: include '../exp.gin' is circular: exp.gin -> parts/a.gin -> parts/b.gin -> exp.gin.": {
        **_INCLUDING,
        "parts/b.gin": "\ninclude '../exp.gin'\n",
    },
    "parts/b.gin:3: experiment has no parameter 'stepz'. Did you mean 'steps'?": {
        **_INCLUDING,
        "parts/b.gin": "\n\nexperiment.stepz = 2\n",
    },
    "exp.gin:1: experiment.seed = 3 has no effect: base.gin:7 sets it again. Remove one of them.": {
        "exp.gin": "experiment.seed = 3\ninclude 'base.gin'\n",
        "base.gin": "{}experiment.seed = 4\n",
    },
    "exp.gin:1: Unknown component datasets.points. Plugins not loaded: ganlab_plugins (broken: ModuleNotFoundError: No "
    "module named 'no_such_module'); see 'ganlab plugins'. Known datasets: none.": {
        "exp.gin": "{}",
        "ganlab_plugins.py": "import no_such_module\n",
    },
}


@pytest.mark.parametrize(("message", "files"), FILES.items())
def test_mistake_in_files(mistake, here, minimal, message, files):
    for name, text in files.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text.replace("{}", minimal))
    assert mistake("run", "--gin", "exp.gin") == message


COMMANDS = {
    "run": "Missing experiment: name a FILE, for example 'ganlab run quickstart', or pass --resume RUN.",
    "run --resume x --name y": "--name, --resume and --resume-or-start each choose the run's folder: give one.",
    "run --gin exp.gin --resume-or-start a/b": (
        "Invalid run name 'a/b': use at most 60 printable characters and no '/', for example 'baseline-2'."
    ),
    "run --gin exp.gin --allow-changes": (
        "--allow-changes works only with --resume and --resume-or-start: leave it out for a new run."
    ),
    "run --resume x": "Run x not found: no such directory.",
    "run --gin exp.gin --seed -1": "Invalid value for '--seed': -1 is not in the range 0<=x<=2147483647.",
    "run --gin exp.gin --no-plugin ganlab_plugin": (
        "--no-plugin names the plugin 'ganlab_plugin', which is not there. Did you mean 'ganlab_plugins'?"
    ),
    "run --gin exp.gin --plugin-file mine.py": (
        "--plugin-file mine.py is not a file. Give the path of a Python file with ganlab hooks."
    ),
    "run --gin exp.gin --param experiment.seed=3 --seed 4": (
        "--param 'experiment.seed=3': experiment.seed = 3 has no effect: --seed 4 sets it again. Remove one of them."
    ),
    "run --gin exp.gin --param experiment.steps=1 --param experiment.steps=2": (
        "--param 'experiment.steps=1': experiment.steps = 1 has no effect: --param 'experiment.steps=2' sets it again. "
        "Remove one of them."
    ),
    "config show": "Missing experiment: name a FILE, for example 'ganlab config show quickstart'.",
    "config explain penatly": f"Unknown component 'penatly'. Did you mean 'penalty'? {LISTED}",
    "config explain penalty.wieght": "constraints.penalty has no parameter 'wieght'. Did you mean 'weight'?",
    "rnu": "No such command 'rnu'. Did you mean 'run'?",
}


@pytest.mark.parametrize(("arguments", "message"), COMMANDS.items())
def test_mistake_in_a_command_line(mistake, here, minimal, arguments, message):
    (here / "exp.gin").write_text(minimal)
    assert mistake(*arguments.split()) == message
