"""A plugin that imports the names that packages of ganlab had first still loads."""

import ganlab
from ganlab.plugins import manager

PLUGIN = """
from ganlab.hookspecs import CONTRACT, hookimpl
from ganlab.roles import Architecture, Batch, Constraint, Critic, Dataset, Evaluator, Loss, Replica, Search

GANLAB_CONTRACT = CONTRACT

class Free(Constraint):
    \"\"\"Constrains nothing.\"\"\"

@hookimpl
def ganlab_constraints():
    return {"free": Free}
"""


def test_a_plugin_with_the_first_names_loads(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    path = tmp_path / "ganlab_plugins.py"
    path.write_text(PLUGIN)
    found = manager.discover(local=path)
    assert [row.status for row in found.rows] == ["loaded"]
    assert isinstance(found.component("constraints", "free").factory(), ganlab.Constraint)
