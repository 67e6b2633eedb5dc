from typing import Any

from ganlab_builtin.architectures import *

def __getattr__(name: str) -> Any: ...
