from typing import Any

from ganlab_builtin.strategies import *

def __getattr__(name: str) -> Any: ...
