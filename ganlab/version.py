"""The version of ganlab, and the name of its distribution: the one place that states them."""

__version__ = "0.1.0"

# Package indexes take names that differ in "-" alone for equal, and there is a `gan-lab`.
DISTRIBUTION = "ganlab-tf"
