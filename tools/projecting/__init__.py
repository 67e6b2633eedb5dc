"""Estimates the time of an iteration on a TPU slice, from its compiled program and the chip's data sheet."""
