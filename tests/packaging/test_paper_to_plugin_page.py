"""docs/paper-to-plugin.md: its files and commands work as written."""

import re
import shlex

import pytest
from alone import Alone
from pages import blocks, files_and_commands

import ganlab

FILES, COMMANDS = files_and_commands(blocks("docs/paper-to-plugin.md"))


def test_the_plugin_is_short():
    assert sum(bool(line.strip()) for line in FILES["ganlab_plugins.py"].splitlines()) < 60


def test_the_constraint_is_the_shipped_one(tmp_path, monkeypatch):
    # The two share no code: equal training is a check of both.
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "page_of_sobolev.py").write_text(FILES["ganlab_plugins.py"])
    import page_of_sobolev
    import tensorflow as tf

    shipped, written = ganlab.component("constraints", "sobolev")(rho=0.3), page_of_sobolev.MySobolev(rho=0.3)
    x = tf.random.stateless_normal([6, 2], seed=[1, 2])
    batch = ganlab.Batch(real=x, fake=x + 1.0, labels=None, size=6, step=tf.constant(0), latent=x)

    found = []
    for constraint in (shipped, written):
        w = tf.Variable([0.3, -0.8])

        def critic(x, w=w):
            return tf.tanh(tf.linalg.matvec(x, w))

        state = constraint.advance({}, constraint.initial_state({}), batch, Alone(), critic)
        state = constraint.advance({}, state, batch, Alone(), critic)
        with tf.GradientTape() as tape:
            total = tf.reduce_mean(constraint.penalty(critic, batch, state, Alone()))
        found.append([float(total), *tape.gradient(total, w).numpy()])
    assert found[1] == pytest.approx(found[0], rel=1e-5)


@pytest.mark.slow
def test_the_page_runs_as_written(tmp_path, environment):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    commands = [shlex.split(command.removeprefix("python -m ")) for command in COMMANDS]
    tested, checked, trained, verified, _ = environment.forked(*commands)
    assert "1 passed" in tested
    assert re.search(r"my_sobolev\s+passed", checked)
    assert "Completed at step 200 of 200" in trained
    assert re.findall(r"^(\w+)\s+passed", verified, flags=re.M) == ["replicas", "graph", "gradients", "microbatches"]
