"""Conformance of schedules: a number for every step, and the first of them as a plain one."""

from __future__ import annotations

import math

import tensorflow as tf

from ganlab import Schedule
from ganlab_verify.testing.conformance import Conformance, check, fail

_STEPS = 8


class ScheduleConformance(Conformance):
    """Checks a schedule against its contract.

    class TestMine(ScheduleConformance):
        def make(self):
            return Mine()
    """

    kind, role = "schedules", Schedule

    @staticmethod
    def _value(schedule: Schedule, step: float, steps: int = _STEPS) -> tf.Tensor:
        return tf.convert_to_tensor(schedule.value(tf.constant(step, tf.float32), steps))

    @check(first=True)
    def test_every_step_has_a_value(self) -> None:
        """`value` returns a finite float32 scalar in every step, the last and later ones included."""
        schedule = self.make()
        for step in range(2 * _STEPS):
            value = self._value(schedule, step)
            if value.shape != () or value.dtype != tf.float32:
                fail(f"value returned the shape {tuple(value.shape)}, {value.dtype.name}; it must be a float32 scalar.")
            if not math.isfinite(float(value)):
                fail(f"value is {float(value)} in step {step} of {_STEPS}; it must be finite.")

    @check()
    def test_the_start_is_the_first_value(self) -> None:
        """`start` is a plain number, that of step 0, which components are made with."""
        schedule = self.make()
        start = schedule.start
        if isinstance(start, bool) or not isinstance(start, (int, float)):
            fail(f"start is {start!r}; it must be a plain number.")
        first = float(self._value(schedule, 0.0))
        if not math.isclose(start, first, rel_tol=1e-6, abs_tol=1e-7):
            fail(f"start is {start!r}, and value gives {first:.7g} in step 0: they must be equal.")

    @check()
    def test_one_trace_gives_all_values(self) -> None:
        """Traced once and called with other steps, it gives what it gives eagerly, in any order."""
        schedule = self.make()
        traced = tf.function(lambda step: schedule.value(step, _STEPS), autograph=False)
        function = traced.get_concrete_function(tf.TensorSpec([], tf.float32))
        for step in reversed(range(_STEPS + 1)):
            now, then = float(function(tf.constant(float(step)))), float(self._value(schedule, step))
            if not math.isclose(now, then, rel_tol=1e-6, abs_tol=1e-7):
                fail(
                    f"In step {step}, value gives {then:.7g}, and {now:.7g} where it was traced once. Compute with "
                    "TensorFlow's operations on step, without Python's if and without counting calls."
                )
