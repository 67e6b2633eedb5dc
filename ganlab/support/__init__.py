"""Helpers that know nothing of GANs: paths, terminal text, strict JSON, signals, atomic files, words for quantities."""
