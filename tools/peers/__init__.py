"""Peers for benchmarks of ganlab: the same training, written by hand without it."""
