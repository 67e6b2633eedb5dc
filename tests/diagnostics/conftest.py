import sys
from pathlib import Path

# small.py and whole_runs.py: small experiments, and what their runs hold.
sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
