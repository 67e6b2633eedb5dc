"""First-party augmentations, registered through this package's entry point like any plugin's."""

from __future__ import annotations

import ganlab
from ganlab_builtin.augmentations.ada import ADA
from ganlab_builtin.augmentations.diff_augment import DiffAugment
from ganlab_builtin.augmentations.diffusion import Diffusion


@ganlab.hookimpl
def ganlab_augmentations() -> dict[str, type[ganlab.Augmentation]]:
    """The augmentations of this package."""
    return {"ada": ADA, "diff_augment": DiffAugment, "diffusion": Diffusion}
