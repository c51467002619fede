"""The choice of the first prototypes: class means, k-means in classes, a discriminant, or points of the user."""

from rplvq.initializers._from_samples import (
    ClassKMeans,
    ClassMeans,
    Discriminant,
    DiscriminantMeans,
    discriminant_beside,
    discriminant_points,
    perturbed,
    places_means,
    prototype_counts,
)
from rplvq.initializers._given import GivenPrototypes

__all__ = [
    "ClassKMeans", "ClassMeans", "Discriminant", "DiscriminantMeans", "GivenPrototypes", "discriminant_beside",
    "discriminant_points", "perturbed", "places_means", "prototype_counts",
]  # fmt: skip


def __dir__() -> list[str]:
    """List what users call, which is what completion shows; the other names are for rooms of the library."""
    return ["ClassKMeans", "ClassMeans", "DiscriminantMeans", "GivenPrototypes"]
