"""The conformance kit for plugin authors, by its documented name; it is `ganlab_verify.testing`."""

from typing import TYPE_CHECKING

from ganlab_verify.testing import __all__ as __all__
from ganlab_verify.testing import __getattr__ as __getattr__

if TYPE_CHECKING:
    from ganlab_verify.testing import *  # noqa: F403
