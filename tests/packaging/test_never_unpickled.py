"""Archives and weight files are data: code that reads one must not execute its contents."""

import ast

from pages import ROOT

# Calls that execute a file's contents. `pickle.loads` of bytes pickled in the same line reads no file.
FORBIDDEN = {"pickle.load", "pickle.Unpickler", "joblib.load", "torch.load"}
FORBIDDEN |= {"marshal.load", "marshal.loads", "shelve.open"}
ENDS = ("load", "loads", "Unpickler", "open", "load_model", "unsafe_load", "enable_unsafe_deserialization")
FILES = sorted([*(ROOT / "ganlab").rglob("*.py"), *(ROOT / "plugins").rglob("*.py"), *(ROOT / "tools").rglob("*.py")])


def problems(source):
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not getattr(node.func, "attr", getattr(node.func, "id", "")).endswith(
            ENDS
        ):
            continue
        called, keywords = ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords}
        if called in FORBIDDEN or called.endswith("enable_unsafe_deserialization"):
            yield called
        elif called in ("np.load", "numpy.load") and keywords.get("allow_pickle") != "False":
            yield f"{called} without allow_pickle=False"
        elif called.endswith("load_model") and keywords.get("safe_mode", "True") != "True":
            yield f"{called} with safe_mode"
        elif called in ("yaml.load", "yaml.unsafe_load"):
            yield called


def test_no_file_is_unpickled():
    assert {str(path): found for path in FILES if (found := list(problems(path.read_text())))} == {}


def test_unsafe_calls_are_found():
    assert list(problems("np.load(f)")) == ["np.load without allow_pickle=False"]
    assert list(problems("np.load(f, allow_pickle=True)")) == ["np.load without allow_pickle=False"]
    assert list(problems("import pickle\nx = pickle.load(f)")) == ["pickle.load"]
    assert list(problems("keras.saving.load_model(f, safe_mode=False)")) == ["keras.saving.load_model with safe_mode"]
    assert list(problems("np.load(f, allow_pickle=False)\npickle.loads(pickle.dumps(1))\nload_model(f)")) == []
