"""`ganlab.compare` on runs with known numbers: rows, columns, figures, and the notes on runs that ended badly."""

import json
import math
import shutil
import statistics

import pytest
from ganlab_compare import short_names, without_common
from synthetic import SETTINGS, WEIGHT, write_grid, write_run

import ganlab
from ganlab.comparing import Metric, compare
from ganlab.errors import ConfigError, RunError


def constraint(name, **parameters):
    """Settings of one constraint with its parameters; None for no constraint."""
    plain = {key: value for key, value in SETTINGS.items() if not key.startswith("constraints")}
    return {**plain, "constraints": name, **{f"constraints.{name}.{key}": value for key, value in parameters.items()}}


def labels(comparison):
    return [one.label for one in comparison.configurations]


def seeds(comparison):
    return [[run.seed for run in one.runs] for one in comparison.configurations]


def test_runs_that_differ_in_the_seed_alone_are_one_configuration(tmp_path):
    for seed, end in ((2, 5.0), (0, 1.0), (1, 3.0)):
        write_run(tmp_path / f"s{seed}", seed=seed, metrics={"critic/wasserstein": (9.0, end)})
    found = ganlab.compare([tmp_path])
    assert (labels(found), seeds(found), found.differing) == (["all runs"], [[0, 1, 2]], ())
    assert found.metrics == (Metric("critic/wasserstein", None),)
    estimate = found.estimates["all runs", "critic/wasserstein"]
    assert (estimate.mean, estimate.n) == (3.0, 3)
    assert (found.best, found.improvement, found.problems) == ({}, {}, ())
    assert found.common == {name: value for name, value in SETTINGS.items() if name != "experiment.seed"}


def test_parameters_of_other_constraints_are_not_columns_unless_they_vary(tmp_path):
    write_run(tmp_path / "a", settings=constraint("gradient_penalty", weight=10.0, target=1.0))
    write_run(tmp_path / "b", settings=constraint("gradient_penalty", weight=1.0, target=1.0))
    write_run(tmp_path / "c", settings=constraint("weight_clipping", limit=0.01))
    found = compare([tmp_path])
    assert found.differing == ("constraints", WEIGHT)
    assert [one.settings for one in found.configurations] == [
        {"constraints": "gradient_penalty", WEIGHT: 1.0},
        {"constraints": "gradient_penalty", WEIGHT: 10.0},
        {"constraints": "weight_clipping"},
    ]
    assert labels(found)[2] == "weight_clipping"
    assert found.common["constraints.gradient_penalty.target"] == 1.0
    assert found.common["constraints.weight_clipping.limit"] == 0.01


def test_a_setting_that_one_leaves_out_is_a_column(tmp_path):
    write_run(tmp_path / "a", settings={**SETTINGS, "experiment.ema_decay": 0.9})
    write_run(tmp_path / "b", settings={**SETTINGS, "experiment.ema_decay": None})
    found = compare([tmp_path])
    assert found.differing == ("experiment.ema_decay",)
    assert labels(found) == ["no ema_decay", "ema_decay=0.9"]


def test_learning_rates_of_one_optimizer_and_of_two_are_one_column(tmp_path):
    both = {"critic_optimizer": "adam", "generator_optimizer": "adam"}
    rate = "adam.learning_rate"
    write_run(tmp_path / "a", settings={**SETTINGS, **both, f"optimizers.{rate}": 1e-4})
    split = {f"critic_optimizer/optimizers.{rate}": 4e-4, f"generator_optimizer/optimizers.{rate}": 1e-4}
    write_run(tmp_path / "b", settings={**SETTINGS, **both, **split})
    found = compare([tmp_path])
    column = f"critic_optimizer/optimizers.{rate}"
    assert [one.settings.get(column) for one in found.configurations] == [1e-4, 4e-4]


def test_grouping_by_a_setting_pools_the_others_with_a_note(tmp_path):
    for weight in (1.0, 10.0):
        for width in (64, 128):
            for seed in (0, 1):
                changed = {**SETTINGS, WEIGHT: weight, "architectures.mlp.width": width}
                value = 100 * weight + width + seed
                path = tmp_path / f"{weight}-{width}-{seed}"
                write_run(path, seed=seed, settings=changed, metrics={"critic/wasserstein": (value,)})
    assert len(compare([tmp_path]).configurations) == 4
    found = compare([tmp_path], by=["weight"])
    assert (labels(found), found.differing) == (["gradient_penalty.weight=1", "gradient_penalty.weight=10"], (WEIGHT,))
    assert found.estimates["gradient_penalty.weight=1", "critic/wasserstein"].mean == 100 + 96 + 0.5
    (said,) = found.problems
    assert said.startswith("Rows pool runs that differ in architectures.mlp.width: means and intervals are over these")
    assert len(compare([tmp_path], by=["width", "gradient_penalty.weight"]).configurations) == 4
    assert seeds(compare([tmp_path], by=["seed"])) == [[0] * 4, [1] * 4]


def test_one_path_setting_or_metric_alone_is_a_list_of_it(tmp_path):
    write_grid(tmp_path, (1.0, 2.0), 1)
    whole = compare([tmp_path], by=["weight"], metrics=["wasserstein"])
    assert compare(tmp_path, by="weight", metrics="wasserstein") == whole
    assert compare(str(tmp_path), by="weight", metrics="wasserstein") == whole
    with pytest.raises(RunError, match="Run nowhere not found"):
        compare("nowhere")
    with pytest.raises(ConfigError, match=r"^paths = 3 must be a path, or a list of paths\.$"):
        compare(3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ["wieght"]}, "The runs have no setting 'wieght'. Did you mean 'weight'?"),
        ({"by": ["depth"]}, "The setting 'depth' may be architectures.a.depth or architectures.b.depth: give one"),
        ({"metrics": ["wassertein"]}, "The runs have no metric 'wassertein'. Did you mean 'critic/wasserstein'?"),
        ({"metrics": ["wassertein:up"]}, "The runs have no metric 'wassertein'. Did you mean 'critic/wasserstein'?"),
        ({"metrics": ["critic/wasserstein:MIN"]}, "ends in 'MIN': after its colon must be max or min"),
        ({"against": 5}, "against = 5 must be a text"),
        ({"against": "weight=3"}, "No configuration matches 'weight=3'. There are: 'gradient_pen"),
        ({"against": "weight=1 digits"}, "No configuration matches 'weight=1 digits'"),
    ],
)
def test_unknown_and_ambiguous_names_are_refused(tmp_path, arguments, message):
    for weight in (1.0, 2.0):
        more = {WEIGHT: weight, "architectures.a.depth": 1, "architectures.b.depth": 2}
        write_run(tmp_path / f"{weight}", settings={**SETTINGS, **more})
    with pytest.raises(ConfigError) as error:
        compare([tmp_path], **arguments)
    assert message in str(error.value)


def test_last_and_best_and_which_way_is_better(tmp_path):
    figures = {
        "mode_coverage/modes": (2.0, 8.0, 6.0),
        "exact_w1/distance": (0.5, 0.1, 0.3),
        "exact_w1/real_against_real": (0.05, 0.05, 0.05),
        "mine/figure": (1.0, 2.0, 3.0),
    }
    write_run(tmp_path / "a", evaluation=figures)
    found = compare([tmp_path])
    modes, distance, _, mine = (f"evaluation/{name}" for name in figures)
    loss = "critic/wasserstein"
    assert found.metrics == (Metric(modes, "max"), Metric(distance, "min"), Metric(mine, None), Metric(loss, None))
    last, best = ({tag: one.mean for (_, tag), one in each.items()} for each in (found.estimates, found.best))
    assert last == {modes: 6.0, distance: 0.3, mine: 3.0, loss: 1.0}
    assert best == {modes: 8.0, distance: 0.1}
    turned = compare([tmp_path], metrics=["wasserstein:min", "figure:max", "distance:max"])
    assert turned.metrics == (Metric(loss, "min"), Metric(mine, "max"), Metric(distance, "max"))
    assert [turned.best["all runs", metric.tag].mean for metric in turned.metrics] == [1.0, 3.0, 0.5]


def test_six_metrics_by_default_and_the_others_are_listed(tmp_path):
    write_run(tmp_path / "a", evaluation={f"mine/f{number}": (1.0,) for number in range(7)})
    found = compare([tmp_path])
    assert [metric.tag for metric in found.metrics] == [f"evaluation/mine/f{n}" for n in range(5)] + [
        "critic/wasserstein"
    ]
    assert found.problems == (
        "2 more figures are not shown: evaluation/mine/f5, evaluation/mine/f6. Choose with --metric.",
    )


def test_a_metric_that_only_metrics_jsonl_has(tmp_path):
    run = write_run(
        tmp_path / "a", metrics={"critic/wasserstein": (2.0, 1.0), "constraints/r1/lipschitz_bound": (5.0,)}
    )
    run.update(metrics={"critic/wasserstein": 1.0})
    found = compare([tmp_path], metrics=["lipschitz_bound"])
    assert found.estimates["all runs", "constraints/r1/lipschitz_bound"].mean == 5.0


def test_improvement_is_over_the_best_or_over_a_reference(tmp_path):
    ends = {1.0: (3.0, 5.0), 10.0: (1.0, 4.0), 100.0: (9.0, 2.0)}
    write_grid(tmp_path, ends, evaluation=lambda weight, seed: {"exact_w1/distance": (ends[weight][seed],)})
    tag = "evaluation/exact_w1/distance"
    one, ten, hundred = (f"gradient_penalty.weight={weight}" for weight in (1, 10, 100))
    found = compare([tmp_path])
    # Means 4, 2.5 and 5.5. Of the pairs (3, 5) under (1, 4): 3 < 4. Of (9, 2) under (1, 4): 2 < 4.
    better = {label: (item.probability, item.against) for (label, _), item in found.improvement.items()}
    assert better == {one: (0.25, ten), hundred: (0.25, ten)}
    assert compare([tmp_path], against="weight=1e2").improvement[one, tag].against == hundred
    found = compare([tmp_path], against="weight=100")
    # (3, 5) under (9, 2): both below 9. (1, 4) under (9, 2): 1 < 9, 1 < 2, 4 < 9.
    assert found.improvement[one, tag].probability == 0.5
    assert found.improvement[ten, tag].probability == 0.75
    assert (hundred, tag) not in found.improvement


def test_unfinished_and_diverged_runs_are_counted_and_listed(tmp_path):
    tag = "evaluation/exact_w1/distance"
    for seed, (status, value) in enumerate(
        [("completed", 2.0), ("interrupted", 4.0), ("diverged", 1.0), ("completed", math.nan), ("failed", 6.0)]
    ):
        figures = {"exact_w1/distance": (3.0, value)}
        write_run(tmp_path / "runs" / f"s{seed}", seed=seed, status=status, steps=99, evaluation=figures)
    found = compare([tmp_path])
    estimate = found.estimates["all runs", tag]
    assert (estimate.mean, estimate.n) == (4.0, 3)  # of 2, 4 and 6: the diverged one and NaN do not count
    assert found.best["all runs", tag].mean == statistics.mean([2.0, 3.0, 1.0, 3.0, 3.0])
    assert found.problems == (
        "2 of 5 runs unfinished: runs/s1 interrupted at step 40 of 99, runs/s4 failed at step 40 of 99. What they have "
        "so far counts.",
        "1 of 5 runs diverged: runs/s2 at step 40. Means are of the others; as to which is better, any other run is "
        "better than one that diverged.",
        "1 of 5 runs whose evaluation/exact_w1/distance is not finite: runs/s3 has nan. The mean is of the others.",
    )


def test_a_diverged_run_is_worse_than_any_other(tmp_path):
    write_grid(
        tmp_path,
        (1.0, 10.0),
        status=lambda *run: "diverged" if run == (10.0, 1) else "completed",
        evaluation=lambda weight, seed: {"exact_w1/distance": (weight if weight == 1 else 0.5,)},
    )
    found = compare([tmp_path], against="weight=1")
    # 0.5 is under both of (1, 1); the diverged run, though 0.5 was its last figure, under none.
    assert found.improvement["gradient_penalty.weight=10", "evaluation/exact_w1/distance"].probability == 0.5


def test_a_run_without_a_figure_is_listed(tmp_path):
    write_run(tmp_path / "runs" / "a", seed=0, evaluation={"exact_w1/distance": (1.0,)})
    write_run(tmp_path / "runs" / "b", seed=1)
    found = compare([tmp_path])
    assert found.problems == ("1 of 2 runs without evaluation/exact_w1/distance: runs/b.",)
    assert found.estimates["all runs", "evaluation/exact_w1/distance"].n == 1


def test_last_values_of_a_killed_run_come_from_the_file(tmp_path):
    run = write_run(tmp_path / "a", status="running", metrics={"critic/wasserstein": (4.0, 3.0, 2.0)}, steps=100)
    run.update(step=10, metrics={"critic/wasserstein": 4.0})
    found = compare([tmp_path])
    assert found.estimates["all runs", "critic/wasserstein"].mean == 2.0
    assert found.configurations[0].runs[0].step == 30
    assert "a killed while running at step 30 of 100" in found.problems[0]


def test_figures_of_ganlab_evaluate_are_compared(tmp_path):
    run = write_run(tmp_path / "a", evaluation={"kid/distance": (0.5, 0.25)})
    run.update(evaluation={"kid/distance": 0.25, "exact_w1/distance": 0.125})
    found = compare([tmp_path])
    assert found.best["all runs", "evaluation/exact_w1/distance"].mean == 0.125
    assert found.best["all runs", "evaluation/kid/distance"].mean == 0.25


def test_a_rerun_does_not_count_as_another_seed(tmp_path):
    def write(name, day, status, value, seed=0):
        started = f"2026-08-{day:02d}T12:00:00+00:00"
        write_run(tmp_path / name, seed=seed, started=started, status=status, metrics={"critic/wasserstein": (value,)})

    write("first", 1, "completed", 1.0)
    write("second", 3, "completed", 2.0)
    write("third", 4, "interrupted", 3.0)
    write("other", 2, "interrupted", 10.0, seed=1)
    write("newer", 3, "running", 20.0, seed=1)
    found = compare([tmp_path])
    assert [run.path.name for run in found.configurations[0].runs] == ["second", "newer"]
    assert found.estimates["all runs", "critic/wasserstein"].mean == 11.0
    assert found.problems[0] == (
        "3 runs have the settings and the seed of another and are left out: a rerun is not another seed. Of each, the "
        "newest that came to its end is kept."
    )
    write("fourth", 5, "completed", 4.0)
    (tmp_path / "fourth" / "metrics.jsonl").write_text("damaged\n")  # so its rerun stands for the seed
    found = compare([tmp_path], metrics=["wasserstein:min"])
    assert [run.path.name for run in found.configurations[0].runs] == ["second", "newer"]


def test_paths_are_runs_folders_and_patterns_and_each_run_counts_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x/a/s0", "x/b/s1", "y/s2"):
        write_run(tmp_path / name, seed=int(name[-1]))
    (tmp_path / "x" / "sweep.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    assert seeds(compare(["x/a/s0"])) == [[0]]
    assert seeds(compare(["x", "x/a", tmp_path / "x" / "a" / "s0", "y"])) == [[0, 1, 2]]
    assert seeds(compare(["x/*", "*/s2"])) == [[0, 1, 2]]
    assert seeds(compare(["**/s?", "empty"])) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "run.json").write_text("{"), "run.json is not JSON"),
        (lambda run: (run / "run.json").write_text("[1]"), "run.json holds a list; it must hold an object"),
        (lambda run: (run / "run.json").write_bytes(b"\xff\xfe"), "run.json"),
        (lambda run: replace(run, settings=[1]), "settings = [1] must be an object of fields"),
        (lambda run: replace(run, settings={"a": {"b": 1}}), "settings.a = {'b': 1} must be a number or a text"),
        (lambda run: replace(run, settings=None), "has no settings. Restore"),
        (lambda run: (run / "metrics.jsonl").write_text("hello\n"), "line 1: 'hello' is not a line of metrics"),
    ],
)
def test_unreadable_runs_are_listed_and_left_out(tmp_path, spoil, message):
    for seed in (0, 1):
        write_run(tmp_path / f"s{seed}", seed=seed, evaluation={"exact_w1/distance": (1.0,)})
    spoil(tmp_path / "s1")
    found = compare([tmp_path])
    assert seeds(found) == [[0]]
    (problem,) = found.problems
    assert problem.startswith("Left out: ")
    assert message in problem
    assert str(tmp_path / "s1") in problem
    shutil.rmtree(tmp_path / "s0")
    with pytest.raises(RunError, match="s1"):
        compare([tmp_path])


def replace(run, **fields):
    info = {**json.loads((run / "run.json").read_text()), **fields}
    (run / "run.json").write_text(json.dumps({name: value for name, value in info.items() if value is not None}))


def test_nothing_to_compare(tmp_path):
    with pytest.raises(RunError, match=r"No run to compare in .*\. Give runs, or folders"):
        compare([tmp_path])


def test_labels_are_unique_even_if_they_are_cut(tmp_path):
    names = [f"experiment.a_rather_long_name_of_a_setting_{number}" for number in range(4)]
    for value in range(3):
        more = zip(names, (value % 2, value % 2, 5 - value, value), strict=True)
        write_run(tmp_path / f"{value}", settings={**SETTINGS, **dict(more)})
    found = labels(compare([tmp_path]))
    assert len(set(found)) == 3
    assert all(len(label) <= 90 and label.endswith("…") for label in found)


def test_short_names_are_what_tells_rows_apart(tmp_path):
    for number, (name, width) in enumerate((("one", 16), ("two", 16), ("two", 32))):
        own = {"dataset": f"/data/of/all/{name}.npz", "mlp.width": width, "mlp.depth": width // 8}
        write_run(tmp_path / str(number), seed=number, settings={**SETTINGS, **own})
    found = short_names(compare([tmp_path]))
    assert sorted(found.values()) == ["one.npz width=16", "two.npz width=16", "two.npz width=32"]
    assert without_common(["runs/a/s0", "runs/b/s0"]) == {"runs/a/s0": "a", "runs/b/s0": "b"}
    assert without_common(["x/y", "y/x"]) == {"x/y": "x/y", "y/x": "y/x"}  # nothing is left that differs
