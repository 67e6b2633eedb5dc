from typing import Any

from ganlab_builtin.evaluators import *

def __getattr__(name: str) -> Any: ...
