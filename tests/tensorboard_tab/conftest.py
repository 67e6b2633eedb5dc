"""Makes the synthetic runs of tests/comparing importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "comparing"))
