"""Signals that ask a run to stop: which ones it handles, and which stay ignored."""

import contextlib
import os
import signal

import pytest

from ganlab.errors import PluginError
from ganlab.plugins.blame import plugin_code
from ganlab.support.signals import STOPPING, undisturbed
from ganlab.training.interruption import StoppedError, signals


def test_a_closed_terminal_stops_as_a_terminated_process_does():
    for number in STOPPING:
        with signals() as received:
            signal.raise_signal(number)
        assert received.first is number
    assert signal.SIGHUP in STOPPING


def test_nohup_is_respected():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals() as received:
            signal.raise_signal(signal.SIGHUP)
        assert received.first is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("first", STOPPING, ids=lambda number: number.name)
def test_a_second_sigint_interrupts_and_is_known_as_one(first):
    with signals() as received:
        signal.raise_signal(first)
        assert not received.interrupted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert received.interrupted
        assert received.first is first


def test_a_signal_abandons_work_that_may_be_disturbed():
    with signals() as received, received.leaving(True), undisturbed():
        signal.raise_signal(signal.SIGTERM)
    assert received.first is signal.SIGTERM
    with pytest.raises(StoppedError), signals() as received, received.leaving(True):
        signal.raise_signal(signal.SIGTERM)


def lost(number):
    """Raises another error in place of the signal's, as pybind11 does."""
    with contextlib.suppress(StoppedError):
        if number is not None:
            signal.raise_signal(number)
    raise TypeError("incompatible function arguments")


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, StoppedError), (None, PluginError)])
def test_an_error_that_a_signal_was_turned_into_counts_as_the_signal(number, error):
    with (
        pytest.raises(error),
        signals() as received,
        received.leaving(True),
        plugin_code("evaluators.a", "evaluate"),
    ):
        lost(number)


def test_a_thread_that_asks_late_reads_nothing_from_a_file_with_the_same_number(tmp_path):
    (tmp_path / "data").write_bytes(b"data")
    with signals() as received:
        reading = received._woken
    file = os.open(tmp_path / "data", os.O_RDONLY)
    try:
        os.dup2(file, reading)
        assert received.asked() is None
        assert os.read(reading, 10) == b"data"
    finally:
        for descriptor in {file, reading}:
            os.close(descriptor)
