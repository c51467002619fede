"""The vocabulary of rplvq: what a manifold, a cost, a schedule and an initializer promise each other.

Everything meets at two arrays of shape (B, K), for B samples and K prototypes::

    squared distances -> cost -> slope = d loss / d sqdist -> weights = 2 * step * slope / B

and the manifold then moves prototype k to ``Exp_k(sum_b weights[b, k] Log_k(x_b))``, because on every
manifold here the Riemannian gradient of the squared distance is ``grad_w d^2(x, w) = -2 Log_w(x)``.
Costs never see a point; manifolds never see a label. That is why every metric, cost and schedule
composes with every other.

Parts are checked by structure, not by inheritance: any object with these methods is a part.
:mod:`rplvq.testing` holds a check for each of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = [
    "Array",
    "Cost",
    "Evaluation",
    "Geodesics",
    "Initializer",
    "Manifold",
    "Prototypes",
    "Schedule",
]

Array: TypeAlias = npt.NDArray[Any]
"""A NumPy array of any dtype; its shape stands in the docstring."""

Prototypes: TypeAlias = Any
"""K prototypes as their manifold likes to carry them.

Either codes, an array of shape (K, ...), or an object of the manifold's own that has a length and that
``numpy.asarray`` turns into codes (the affine-invariant manifold carries inverse factors instead of
matrices). Every manifold method that takes prototypes takes both. An object that carries more than its codes, such as a
learned metric, offers ``with_codes(codes)``, other prototypes with the same of it, so that prototypes can be added.
"""


class Geodesics(Protocol):
    """What one decomposition of all (sample, prototype) pairs yields; it travels whole to ``move``.

    Only ``sqdist`` is public. Whatever else a manifold keeps here (eigenvectors, differences) is
    between its own ``connect`` and ``move``.
    """

    @property
    def sqdist(self) -> Array:
        """Squared geodesic distances, shape (B, K)."""


GeodesicsT = TypeVar("GeodesicsT", bound=Geodesics)


@runtime_checkable
class Manifold(Protocol[GeodesicsT]):
    """A geometry: distances down, weighted logarithms up.

    Eight more members are optional and looked up where they help:

    ``max_step_length``
        float; the longest step (Riemannian length) after which a prototype is still a point in float64.
    ``unit(codes, weights)``
        float; the squared length scale of the weighted data, for geometries whose distances carry units.
        The default step size is multiplied by it, so that training does not depend on the units.
    ``pull(geodesics, weights)``
        ndarray of shape (K, ...); the tangents ``sum_b weights[b, k] Log_k(x_b)`` that ``move`` follows, in
        coordinates of the manifold's own that are linear in the tangent. Pulls of several batches add up if
        they were connected to the same prototypes, carried in the same way.
    ``exp(prototypes, tangents)``
        Prototypes; ``move(geodesics, weights)`` equals ``exp(prototypes, pull(geodesics, weights))`` for the
        prototypes that ``connect`` was given. A manifold has both of these or neither.
    ``margin(prototypes)``
        ndarray of shape (K,); how far each prototype is from the edge of the manifold, as a share: 1 in the
        middle, 0 at the edge. A fit that ends with a prototype at the edge warns (:mod:`rplvq.watch`).
    ``nearest(prototypes, samples)``
        ndarray of int of shape (B,); ``sqdist(prototypes, samples).argmin(axis=1)``, by a faster way.
    ``nearest_in_groups(prototypes, samples, groups)``
        ndarray of int of shape (B,); any prototype of the group (K,) of the nearest, where that is found faster still.
        ``predict`` asks for this one first.
    ``takes_parts``
        bool, set in the class itself; True says that ``unit`` reads codes by a slice or by rows only, so that it may be
        given ``rplvq.samples.Samples``, which are copied in parts, in place of an array of all.
    ``fixed``
        Manifold; the same geometry with everything held that its ``move`` learns beside prototypes. Means use it.
    """

    def encode(self, points: Any) -> Array:
        """Validate points (N, ...) and change to coordinates of shape (N, ...), once per fit or predict.

        Raises
        ------
        ValueError
            If a point is not on the manifold: names the first offending index and the value.
        """

    def decode(self, codes: Prototypes) -> Array:
        """Change codes or prototypes back to points, shape (K, ...)."""

    def sqdist(self, prototypes: Prototypes, samples: Array) -> Array:
        """Squared distances of samples (B, ...) to K prototypes, shape (B, K); values only."""

    def connect(self, prototypes: Prototypes, samples: Array) -> GeodesicsT:
        """Decompose every (sample, prototype) pair once, for distances and for ``move``."""

    def move(self, geodesics: GeodesicsT, weights: Array) -> Prototypes:
        """Move prototype k to ``Exp_k(sum_b weights[b, k] Log_k(x_b))``; weights have shape (B, K)."""


class Evaluation(NamedTuple):
    """A cost at B samples: its value and its derivative by the squared distances.

    Parameters
    ----------
    loss : ndarray of shape (B,)
        Loss of each sample.
    slope : ndarray of shape (B, K)
        d loss[b] / d sqdist[b, k].
    """

    loss: Array
    slope: Array


@runtime_checkable
class Cost(Protocol):
    """A loss of squared distances.

    A cost may also offer ``log_proba(sqdist, labels, sigma2)`` of shape (B, C), its class
    log-posterior; without it the posterior of an equal-weight mixture is used. A cost with a number for each
    class also offers ``among(classes)``, the same cost for the classes of these indices (M,) alone, so that classes may
    turn up late.
    """

    def __call__(self, sqdist: Array, targets: Array, labels: Array, sigma2: float) -> Evaluation:
        """Evaluate the cost.

        Parameters
        ----------
        sqdist : ndarray of shape (B, K)
            Squared distances of the samples to the prototypes.
        targets : ndarray of int of shape (B,), or of float of shape (B, C)
            Class indices 0..C-1, or class probabilities whose rows sum to one.
        labels : ndarray of int of shape (K,)
            Class index of each prototype.
        sigma2 : float
            Variance of the mixture's components, in the units of ``sqdist``.

        Returns
        -------
        Evaluation
            Loss (B,) and slope (B, K).
        """


@runtime_checkable
class Schedule(Protocol):
    """A positive number for each epoch: pure, picklable and comparable.

    An attrs class with a field ``start`` that is None begins at the default of the place where it is used: a copy
    gets it as ``start`` (see :func:`rplvq.schedules.resolve`). Objects of other classes are called as they are.
    """

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Value in ``epoch`` 1..n_epochs; epoch 0 is the value before training, and ``n_epochs`` may be 0."""


@runtime_checkable
class Initializer(Protocol):
    """The choice of the first prototypes.

    One whose class sets ``takes_parts = True`` may be given ``rplvq.samples.Samples`` as codes, which are copied in
    parts; any other gets an array.
    """

    def __call__(
        self,
        manifold: Manifold[Any],
        codes: Array,
        targets: Array,
        n_classes: int,
        rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Prototypes, Array]:
        """Choose K prototypes and their labels.

        Parameters
        ----------
        manifold : Manifold
            The geometry of the codes.
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            As for :class:`Cost`.
        n_classes : int
            Number of classes C.
        rng : numpy.random.Generator
            Source of all randomness.
        sample_weight : ndarray of shape (N,), optional
            Weight of each sample; only given where there is one.

        Returns
        -------
        prototypes : Prototypes
            K prototypes.
        labels : ndarray of int of shape (K,)
            Class index of each.
        """
