"""Helpers that are independent of GANs: paths, terminal text, strict JSON, signals, atomic files, quantities."""
