"""The parts of tools/published.py."""
