from typing import Any

from ganlab_builtin.searches import *

def __getattr__(name: str) -> Any: ...
