"""First prototypes that the user gives."""

import attrs
import numpy as np

from rplvq.arrays import check_prototypes, reads_parts
from rplvq.exceptions import PointError
from rplvq.parts import library_part
from rplvq.protocols import AnyManifold, Array, ArrayLike, Prototypes


@library_part
@attrs.frozen(eq=False)
class GivenPrototypes:
    """Prototypes that the user gives, as points of the manifold."""

    prototypes: ArrayLike
    """Points (K, ...), not codes."""
    labels: Array
    """Class index of each prototype, shape (K,)."""

    @reads_parts
    def __call__(
        self, manifold: AnyManifold, codes: Array, targets: Array, n_classes: int, rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Prototypes, Array]:  # fmt: skip
        """Return the encoded prototypes (K, ...), sorted by class, and labels (K,).

        ValueError is raised if a prototype is not a point of the manifold or has another shape than the samples, if a
        label is out of range, or if a class has no prototype.
        """
        try:
            encoded = manifold.encode(self.prototypes)
        except PointError as error:
            raise error.renamed("init prototypes") from error
        except ValueError as error:
            raise ValueError(f"init prototypes: {str(error).removeprefix('X ')}") from error
        prototypes, labels = check_prototypes((encoded, self.labels), codes.shape[1:], n_classes)
        order = np.argsort(labels, kind="stable")
        return prototypes[order], labels[order]
