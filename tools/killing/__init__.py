"""Parts of `tools/chaos.py`: faults, loss of power, runs that are stopped and resumed, and tests of equality."""
