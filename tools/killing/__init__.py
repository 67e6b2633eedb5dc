"""What `tools/chaos.py` is made of: faults, loss of power, runs that are stopped and resumed, and their equality."""
