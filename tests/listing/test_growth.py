"""Growth of metrics in a diverged run, and how `ganlab runs show` explains its end."""

import json
import math

from command_lines import command
from ganlab_runs.growth import growth
from synthetic import write_run

from ganlab.runs import SHOWN_BY
from ganlab.telemetry import Record

NAN = math.nan
ROWS = {
    "critic/loss": (-0.5, 3.0, -4e8, NAN),
    "generator/loss": (0.0, 20.0, 200.0, 300.0),
    "critic/wasserstein": (0.5, 0.7, 0.9, 1.1),
    "constraints/gradient_penalty/slope": (1.0, 50.0, 7e12, math.inf),
}


def records(rows):
    count = max(map(len, rows.values()))
    return [Record(10 * (i + 1), tag, values[i], (values[i],)) for i in range(count) for tag, values in rows.items()]


def test_growth_ignores_evaluations_and_single_rows():
    assert growth([Record(1, "evaluation/kid/distance", 1.0), Record(2, "evaluation/kid/distance", NAN)]) == []
    assert growth(records({"critic/loss": (1e12,)})) == []
    assert [str(one) for one in growth(records({"critic/loss": (NAN,)}))] == ["critic/loss: nan at step 10"]


ERROR = "critic/loss is not finite from step 40 on: training diverged."


def test_show_explains_divergence_and_lists_growth(tmp_path):
    run = write_run(tmp_path / "run", metrics=ROWS, status="diverged", error=ERROR)
    text = command("runs", "show", run.path)
    part = text[text.index("Why it ended:") : text.index("Settings:")].split("\n")
    assert part[1] == f"  {ERROR}"
    assert part[3:6] == [
        "    constraints/gradient_penalty/slope: 1 at step 10, 7e+12 at step 30, then inf at step 40",
        "    critic/loss: -0.5 at step 10, -4e+08 at step 30, then nan at step 40",
        "    generator/loss: 0 at step 10, 300 at step 40",  # from nothing to 300 is 300 times one
    ]
    assert "  What to try first: docs/divergence.md" in part
    assert "metrics.jsonl" not in text
    grown = json.loads(command("runs", "show", run.path, "--json"))["grown"]
    assert [one["tag"] for one in grown] == ["constraints/gradient_penalty/slope", "critic/loss", "generator/loss"]


def test_show_reports_missing_rows_and_reasons(tmp_path):
    run = write_run(tmp_path / "run", metrics={}, status="diverged")
    text = command("runs", "show", run.path)
    assert "  run.json does not record the reason." in text
    assert "No row shows what grew: the run ended before the first." in text
    (run.path / "metrics.jsonl").write_text("no line\n")
    assert "It is unknown which metrics grew" in command("runs", "show", run.path)


def test_show_does_not_refer_to_itself(tmp_path):
    error = f"{ERROR} Lower the learning rates.{SHOWN_BY}"
    rows = {"critic/loss": (1.0,)}
    run = write_run(tmp_path / "run", metrics=rows, status="diverged", error=error, health=[f"training: {error}"])
    text = command("runs", "show", run.path)
    assert text.count(f"{ERROR} Lower the learning rates.\n") == 2
    assert "runs show" not in text
    assert "No row shows what grew: no metric is ten times what it was in the first one." in text


def test_metrics_never_finite_are_listed_separately(tmp_path):
    run = write_run(tmp_path / "run", metrics={"critic/loss": (NAN,), "a/b": (NAN,)}, status="diverged", error=ERROR)
    assert "  Already not finite in the first row, at step 10: critic/loss, a/b\n" in command("runs", "show", run.path)


def test_show_explains_failure_but_not_success(tmp_path):
    failed = write_run(tmp_path / "failed", status="failed", error="There is not enough memory.\n\x1b[2J")
    assert "Why it ended:\n  There is not enough memory.\n" in command("runs", "show", failed.path)
    assert "\x1b" not in command("runs", "show", failed.path)
    assert "Why it ended" not in command("runs", "show", write_run(tmp_path / "sound", error=None).path)
