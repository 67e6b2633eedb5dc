from typing import Any

from ganlab_builtin.datasets import *

def __getattr__(name: str) -> Any: ...
