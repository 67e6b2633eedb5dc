"""The output on the screen, with and without a terminal."""

from __future__ import annotations

import io
import sys
import types

import pytest
from command_lines import Terminal

from ganlab.telemetry import Console, MultiWriter, Record


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def started(stream, steps=1000, done=0, **options):
    clock = Clock()
    console = Console(stream=stream, clock=clock, **options)
    console.start(steps, done=done)
    return console, clock, stream


def show(console, clock, step, seconds, loss=0.5):
    clock.now += seconds
    console.scalars([Record(step, "critic/loss", loss, (0.25, 0.75)), Record(step, "lr", 9.0)])


def test_without_a_terminal_lines_are_printed_at_intervals():
    console, clock, out = started(io.StringIO())
    console.time_from(0)
    show(console, clock, 100, 5)  # much of the run, but too soon
    show(console, clock, 150, 5, loss=-1.23456)
    show(console, clock, 190, 12)  # long enough, but 4% of the run
    show(console, clock, 200, 8)
    show(console, clock, 201, 300)  # at last after five minutes
    console.close()
    assert out.getvalue().splitlines() == [
        "step 150/1000 (15%)  15.0 steps/s  56.7 s left  critic/loss -1.235",
        "step 200/1000 (20%)  2.5 steps/s  5 min 20 s left  critic/loss 0.5",
        "step 201/1000 (20%)  0.0 steps/s  2 d 18 h left  critic/loss 0.5",
    ]


def test_last_step_is_always_printed_and_a_resumed_run_counts_from_its_step():
    console, clock, out = started(io.StringIO(), done=990)
    console.time_from(990)
    console.scalars([])
    clock.now += 2
    console.scalars([Record(1000, "lr", 0.5)])
    assert out.getvalue() == ""
    console.close()
    console.close()
    assert out.getvalue() == "step 1000/1000 (100%)  5.0 steps/s  0.0 s left\n"


def test_the_first_steps_are_not_part_of_an_estimate():
    console, clock, out = started(io.StringIO())
    clock.now += 300
    console.time_from(1)
    show(console, clock, 1, 0)
    show(console, clock, 101, 50)
    console.close()
    assert out.getvalue().splitlines() == [
        "step 1/1000 (0%)  critic/loss 0.5",
        "step 101/1000 (10%)  2.0 steps/s  7 min 30 s left  critic/loss 0.5",
    ]


def test_quiet_prints_only_warnings():
    console, clock, out = started(Terminal(), steps=10, quiet=True)
    console.message("hello")
    show(console, clock, 10, 1000)
    console.warning("the loss is NaN")
    console.close()
    assert out.getvalue() == "Warning: the loss is NaN\n"


def test_on_a_terminal_there_is_a_bar_and_messages_keep_their_brackets(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    console, clock, out = started(Terminal(), done=10)
    show(console, clock, 500, 1, loss=-1.23456)
    console.message("wrote [red]checkpoint[/red]")
    console.close()
    console.message("after")
    shown = out.getvalue()
    assert "wrote [red]checkpoint[/red]" in shown
    assert "500/1000" in shown
    assert "critic/loss -1.235" in shown
    assert shown.endswith("after\n")


class Recorder:
    def __init__(self, fails=False):
        self.calls, self.fails = [], fails

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            if self.fails:
                raise OSError("no space left")

        return call


def test_several_writers_are_one():
    writers = [Recorder(), Recorder()]
    multi = MultiWriter(writers)
    records = [Record(1, "critic/loss", 0.5)]
    multi.scalars(records)
    multi.image(1, "samples", b"png")
    multi.text(2, "config", "text")
    multi.flush()
    multi.close()
    calls = [("scalars", records), ("image", 1, "samples", b"png"), ("text", 2, "config", "text"), ("flush",)]
    assert writers[0].calls == writers[1].calls == [*calls, ("close",)]


def test_a_writer_that_fails_to_close_does_not_keep_the_others_open():
    good = Recorder()
    multi = MultiWriter([Recorder(fails=True), good])
    with pytest.raises(OSError, match="no space left"):
        multi.close()
    assert good.calls == [("close",)]


def test_a_terminal_that_goes_away_stops_nothing():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

        def flush(self):
            raise BrokenPipeError

    console = Console(stream=Gone())
    console.message("hello")
    console.start(10)
    console.scalars([Record(10, "critic/loss", 1.0)])
    console.warning("careful")
    console.flush()
    console.close()


def test_in_a_notebook_one_cell_is_updated(monkeypatch, capsys):
    clock, cells = Clock(), []

    class Handle:
        def update(self, data, *, raw):
            cells.append(data)

    def display(data, *, raw, display_id):
        cells.append(data)
        return Handle()

    for name, place in {
        "IPython": types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1)),
        "IPython.display": types.SimpleNamespace(display=display),
    }.items():
        monkeypatch.setitem(sys.modules, name, place)
    console = Console(clock=clock)
    console.start(1000)
    for step in range(10, 1010, 10):  # twenty seconds
        show(console, clock, step, 0.2)
    console.close()
    assert 30 < len(cells) < 50
    assert cells[-1]["text/plain"] == "step 1000/1000 (100%)  critic/loss 0.5"
    assert cells[-1]["text/html"] == f'<progress value="1000" max="1000"></progress> {cells[-1]["text/plain"]}'
    assert capsys.readouterr() == ("", "")
