"""Benchmarks of ganlab, as ratios: one module for each family of figures."""
