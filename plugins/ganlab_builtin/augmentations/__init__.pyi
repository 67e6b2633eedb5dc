# Made by tools/stubs.py.
from ganlab_builtin.augmentations.ada import ADA as ADA
from ganlab_builtin.augmentations.diff_augment import DiffAugment as DiffAugment
from ganlab_builtin.augmentations.diffusion import Diffusion as Diffusion
