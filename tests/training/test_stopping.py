"""Signals that ask a run to stop: which ones it handles, and which stay ignored."""

import os
import signal

import pytest

from ganlab.support.signals import STOPPING, exit_code
from ganlab.training.interruption import signals


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


@pytest.mark.parametrize(("name", "code"), [("SIGHUP", 129), ("SIGINT", 130), ("SIGTERM", 143), ("None", 130)])
def test_exit_codes_are_those_of_shells(name, code):
    assert exit_code(name) == code


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
