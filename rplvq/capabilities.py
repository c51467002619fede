"""What a manifold may offer beyond the five methods of :class:`rplvq.protocols.Manifold`.

Each capability is a small protocol that one part of the library asks for, by the names of its methods:

- large and distributed batches, and means in bounded memory: :class:`Additive`,
- fast means of many small groups: :class:`Grouped`,
- a faster ``predict``: :class:`NearestSearch`, and :class:`LowerBounded` for the factors of a product,
- the step size: :class:`Scaled` and :class:`Bounded`,
- coordinates that ``fit`` learns from the samples: :class:`Referenced` and :class:`Supervised`,
- ``explain``: :class:`Decomposed`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from rplvq.protocols import Array, Manifold, Prototypes


class Additive(Protocol):
    """A manifold whose ``move`` splits into a sum and a step.

    The trainer uses it for batches that are too large to be decomposed at once, the Riemannian mean for data that do
    not fit into memory, and distributed training for everything.
    """

    def pull(self, geodesics: Any, weights: Array) -> Array:
        """Return the tangents ``sum_b weights[b, k] Log_k(x_b)``, shape (K, ...).

        The coordinates are the manifold's own and linear in the tangent, so that the results for several batches add up
        if these batches were connected to the same prototypes object.
        """

    def exp(self, prototypes: Prototypes, tangents: Array) -> Prototypes:
        """Follow the tangents: ``exp(prototypes, pull(geodesics, weights))`` equals ``move(geodesics, weights)``."""


class Grouped(Additive, Protocol):
    """A manifold that connects each sample to one prototype only; the means of many groups are then computed together.

    Its coordinates are orthonormal: the inner product of two tangents a and b at a prototype is ``Re vdot(a, b)``. A
    subclass that overrides ``connect``, ``move`` or ``sqdist``, and not ``logarithms``, loses the capability.
    """

    def logarithms(self, prototypes: Prototypes, samples: Array, owners: Array) -> tuple[Array, Array]:
        """Return the squared distance (B,) of each sample to one prototype, and its logarithm (B, ...) there.

        ``owners`` (B,) are the indices of these prototypes. The coordinates of the logarithms are those of ``pull``.
        """


class NearestSearch(Protocol):
    """A manifold that finds the nearest prototype without computing all K distances; ``predict`` uses it."""

    def nearest(self, prototypes: Prototypes, samples: Array, groups: Array | None = None) -> Array:
        """Return ``sqdist(prototypes, samples).argmin(axis=1)``, shape (B,), by a faster way.

        If ``groups`` (K,) is given, such as the class of each prototype, the result may be any prototype that has the
        same group as the nearest one.
        """


Lengths = Callable[[Array, Array], Array]
"""A function that returns distances (M,) of M samples and prototypes, given their indices (M,)."""


class Bounds(NamedTuple):
    """Lower bounds of distances, and how to compute few distances exactly.

    Parameters
    ----------
    lower : ndarray of shape (B, K)
        Lower bounds of the distances, not squared; minus infinity where nothing is known.
    slack : ndarray of shape (B,)
        Bounds on the rounding of the distances of each sample.
    lengths_of : callable
        ``lengths_of(rows, columns)`` returns the distances (M,) of M samples and prototypes, given their indices.
    """

    lower: Array
    slack: Array
    lengths_of: Lengths


class LowerBounded(Protocol):
    """A manifold with lower bounds of its distances, which a :class:`rplvq.Product` adds up in its own search."""

    def bounds(self, prototypes: Prototypes, samples: Array) -> Bounds:
        """Return the lower bounds of the distances of samples (B, ...) to K prototypes."""


class Scaled(Protocol):
    """A manifold whose distances carry units; the default step size is multiplied by the unit."""

    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Return the squared length scale of the weighted data (N, ...)."""


class Bounded(Protocol):
    """A manifold on which long steps are not exact in float64; the trainer shortens steps to this length."""

    @property
    def max_step_length(self) -> float:
        """The longest step, in the manifold's own distance."""


class Referenced(Protocol):
    """A manifold whose coordinates depend on a reference point that is learned from the training samples.

    An estimator calls ``referenced`` at the beginning of each new fit, and in the first call of ``partial_fit``. Later
    calls and predictions use the manifold that ``referenced`` returned. Before that, ``encode`` raises ValueError.
    """

    @property
    def ambient(self) -> Manifold[Any]:
        """A manifold without a reference, which checks the points; ``referenced`` takes its codes."""

    def referenced(
        self, points: Any, groups: Array | None = None, weights: Array | None = None
    ) -> tuple[Manifold[Any], Array]:
        """Return this manifold with its reference, and the codes (N, ...) of the points in that manifold.

        Parameters
        ----------
        points : ndarray or LazyRows of shape (N, ...)
            Codes of ``ambient``. The result must not depend on their order, except by rounding.
        groups : ndarray of shape (N,), optional
            A partition of the points, such as the class of each point.
        weights : ndarray of shape (N,), optional
            Multiplicity of each point.

        Raises
        ------
        ValueError
            If no reference can be learned from the points.
        """


class Supervised(Protocol):
    """A manifold that also learns from the groups of the points, which are the classes of the training samples.

    A trial within ``fit`` holds samples out. If the manifold had learned from their classes, the held-out loss would be
    too low. Each trial therefore learns again, from the samples that train in it.
    """

    def relearned(
        self, kept: Array, held: Array, groups: Array, weights: Array | None = None
    ) -> tuple[Manifold[Any], Array, Array]:
        """Return a manifold that is learned from the codes ``kept`` (N, ...) only, and all codes in that manifold.

        ``held`` (M, ...) are the codes of the held-out samples. ``groups`` and ``weights`` (N,) belong to ``kept``.
        What is learned without groups may stay as it is.
        """


class Spectrum(NamedTuple):
    """Generalised eigenvalues and eigenvectors of samples X and prototypes W: ``X v = lam W v`` with ``v^H W v = 1``.

    Parameters
    ----------
    eigenvalues : ndarray of shape (B, K, n)
        Power of the sample in each filter, in units of the power of the prototype, ascending.
    filters, patterns : ndarray of shape (B, K, n, n)
        The eigenvectors v_i (filters) and ``W v_i`` (patterns), as columns. ``filters`` has the inverse ``patterns^H``.
    """

    eigenvalues: Array
    filters: Array
    patterns: Array


class Components(NamedTuple):
    """The squared distances of B samples to K prototypes as sums of parts that add up to them, up to rounding.

    Parameters
    ----------
    shares : ndarray of shape (B, K, ...)
        Parts of the squared distances: ``shares[b, k].sum()`` is ``sqdist[b, k]``. With a spectrum, the shape is (B, K,
        n). Without one, an entry stands for the same coordinate under all prototypes, such as one entry of a logarithm
        or one factor of a product.
    spectrum : Spectrum, optional
        Eigenvalues, filters and patterns to which the shares belong.
    """

    shares: Array
    spectrum: Spectrum | None = None


class Decomposed(Protocol):
    """A manifold that can split its squared distances into sums of meaningful parts, which ``explain`` shows."""

    def components(self, prototypes: Prototypes, samples: Array) -> Components:
        """Split the squared distances of samples (B, ...) to K prototypes, shape (B, K), into sums."""
