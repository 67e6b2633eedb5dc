"""First-party datasets, registered through this package's entry point like any plugin's."""

from __future__ import annotations

from typing import Any

import ganlab
from ganlab_builtin.datasets.arrays import Arrays
from ganlab_builtin.datasets.characters import Characters
from ganlab_builtin.datasets.convex_pairs import ConvexPairs
from ganlab_builtin.datasets.digits import Digits
from ganlab_builtin.datasets.edges import Edges
from ganlab_builtin.datasets.glyphs import Glyphs
from ganlab_builtin.datasets.idx import Idx
from ganlab_builtin.datasets.image_folder import ImageFolder
from ganlab_builtin.datasets.in_memory import dataset_of
from ganlab_builtin.datasets.keras_images import KerasImages
from ganlab_builtin.datasets.known_distances import TranslatedGaussians, TwoImages
from ganlab_builtin.datasets.min_funnels import MinFunnels
from ganlab_builtin.datasets.mixtures import GaussianGrid, GaussianRing
from ganlab_builtin.datasets.moved_examples import MovedExamples
from ganlab_builtin.datasets.photo_patches import PhotoPatches
from ganlab_builtin.datasets.showers import Showers
from ganlab_builtin.datasets.sines import Sines
from ganlab_builtin.datasets.stacked import StackedMnist
from ganlab_builtin.datasets.swiss_roll import SwissRoll
from ganlab_builtin.datasets.tfds_images import TfdsImages
from ganlab_builtin.datasets.tfrecords import TFRecords
from ganlab_builtin.datasets.varied import Varied

GANLAB_KNOWN_AS = {
    "datasets.keras": ["mnist", "fashion_mnist", "cifar", "cifar10", "cifar100"],
    "datasets.tfds": ["celeba", "celeb_a", "imagenet", "lsun", "tensorflow_datasets"],
    "datasets.image_folder": ["images", "folder", "imagefolder", "png", "jpg"],
    "datasets.arrays": ["numpy", "array", "npz", "npy"],
    "datasets.gaussian_ring": ["eight_gaussians", "8gaussians", "ring"],
    "datasets.gaussian_grid": ["twenty_five_gaussians", "25gaussians", "grid"],
}


@ganlab.hookimpl
def ganlab_datasets() -> dict[str, type[ganlab.Dataset]]:
    """The datasets of this package."""
    return {
        "arrays": Arrays,
        "characters": Characters,
        "convex_pairs": ConvexPairs,
        "digits": Digits,
        "edges": Edges,
        "gaussian_grid": GaussianGrid,
        "gaussian_ring": GaussianRing,
        "glyphs": Glyphs,
        "idx": Idx,
        "image_folder": ImageFolder,
        "keras": KerasImages,
        "min_funnels": MinFunnels,
        "moved_examples": MovedExamples,
        "photo_patches": PhotoPatches,
        "showers": Showers,
        "sines": Sines,
        "stacked_mnist": StackedMnist,
        "swiss_roll": SwissRoll,
        "tfds": TfdsImages,
        "tfrecords": TFRecords,
        "translated_gaussians": TranslatedGaussians,
        "two_images": TwoImages,
        "varied": Varied,
    }


@ganlab.hookimpl
def ganlab_data(data: Any) -> ganlab.Dataset | None:
    """Arrays, sets of tf.data and of PyTorch."""
    return dataset_of(data)
