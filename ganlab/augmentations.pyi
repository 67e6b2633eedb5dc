from typing import Any

from ganlab_builtin.augmentations import *

def __getattr__(name: str) -> Any: ...
