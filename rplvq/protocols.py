"""The vocabulary of rplvq: what a manifold, a cost, a schedule, a step rule and an initializer promise each other.

Everything meets at two arrays of shape (B, K), with one row per sample of a batch and one column per prototype::

    squared distances -> cost -> slope = d loss / d sqdist -> weights = 2 * step_size * slope / B

The manifold then moves prototype k to ``Exp_k(sum_b weights[b, k] Log_k(x_b))``, because the Riemannian gradient of the
squared distance is ``grad_w d^2(x, w) = -2 Log_w(x)`` on every manifold of this library. Costs never see a point, and
manifolds never see the label of a sample. This is why every metric can be combined with every cost and every schedule.

An object is a part of one of these kinds if it has the methods that the protocol lists; it need not inherit anything.
:mod:`rplvq.testing` has one check per kind.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""A NumPy array of any dtype. The docstring that mentions it states its shape."""

ArrayLike: TypeAlias = npt.ArrayLike
"""What users pass as an array: an array, nested sequences of numbers, or an object that NumPy reads as an array."""

Prototypes: TypeAlias = Any
"""K prototypes in the manifold's internal representation.

Prototypes are either codes, an array of shape (K, ...), or an object of the manifold's own that has a length and that
``numpy.asarray`` turns into codes, such as inverse factors. Every manifold method that takes prototypes accepts both.
"""


class StatefulPrototypes(Protocol):
    """Prototypes that store more than codes, such as a learned metric."""

    def __len__(self) -> int:
        """Return K."""

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Return the codes (K, ...)."""

    def with_codes(self, codes: Array) -> Prototypes:
        """Return new prototypes with these codes (M, ...), which share this state."""


class Geodesics(Protocol):
    """What one decomposition of all (sample, prototype) pairs yields; it is passed to ``move`` unchanged.

    Whatever else a manifold stores here, such as eigenvectors, is read by the manifold itself.
    """

    @property
    def sqdist(self) -> Array:
        """Squared geodesic distances, shape (B, K)."""


GeodesicsT = TypeVar("GeodesicsT", bound=Geodesics)
MemoryT = TypeVar("MemoryT")


@runtime_checkable
class Manifold(Protocol[GeodesicsT]):
    """A geometry: it computes distances and moves prototypes along weighted logarithms.

    A divergence, which is no squared distance, also has a place here: its ``move`` then follows the vectors
    ``-grad_w d(x, w) / 2`` in place of the logarithms, and ``check_manifold(..., divergence=True)`` checks it.

    These five methods are required. What a manifold may also offer is in :mod:`rplvq.capabilities`.

    A manifold whose ``connect`` and ``move`` do what a compiled kernel does names this kernel by the mark
    :func:`rplvq.parts.has_kernel` on both methods. :func:`rplvq.manifolds.flat_connect` and
    :func:`rplvq.manifolds.flat_move` have such marks. Without marks, steps take the plain path.
    """

    def encode(self, points: ArrayLike) -> Array:
        """Check points (N, ...) and return their codes (N, ...), the coordinates in which the other methods work.

        It runs once per fit or predict. ValueError names the first point that is not on the manifold, and the value.
        """

    def decode(self, codes: Prototypes) -> Array:
        """Return the points (K, ...) of codes or prototypes."""

    def sqdist(self, prototypes: Prototypes, samples: Array) -> Array:
        """Return the squared distances (B, K) of samples (B, ...) to K prototypes."""

    def connect(self, prototypes: Prototypes, samples: Array) -> GeodesicsT:
        """Return what the distances and ``move`` need of every (sample, prototype) pair, computed once."""

    def move(self, geodesics: GeodesicsT, weights: Array) -> Prototypes:
        """Return prototypes k moved to ``Exp_k(sum_b weights[b, k] Log_k(x_b))``, for weights (B, K)."""


AnyManifold: TypeAlias = Manifold[Any]
"""A manifold, whatever its geodesics hold."""


class Evaluation(NamedTuple):
    """The value of a cost for B samples, and its derivative with respect to the squared distances."""

    loss: Array  # (B,)
    slope: Array  # (B, K), d loss[b] / d sqdist[b, k]


@runtime_checkable
class Cost(Protocol):
    """A loss that depends on squared distances.

    What a cost may also offer is in :mod:`rplvq.capabilities`. The decorator :func:`rplvq.costs.described_by` adds a
    description by numbers, from which compiled steps evaluate the cost (extra ``fast``).
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
            Loss (B,) and slope (B, K). A plain tuple of both will do. ValueError is raised if the cost needs class
            indices, and gets class probabilities.
        """


@runtime_checkable
class Schedule(Protocol):
    """A finite number per epoch; a schedule is pure, picklable and comparable.

    A value of sigma2 is positive. A step size may also be 0, for example while it warms up: nothing moves in such an
    epoch.

    If an attrs class has a field ``start`` that is None, a fit uses a copy that starts at the default of the parameter.
    All other objects, plain functions among them, are called as they are.
    """

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the value in ``epoch`` 0..n_epochs, where epoch 0 is before training; ``n_epochs`` is at least 1."""


class StepRule(Schedule, Protocol[MemoryT]):
    """A step size that depends on what the earlier steps met.

    The trainer calls ``init`` once before training. It then calls ``update`` in every step, after the gradient is known
    and before the prototypes move, and ``observe`` after they have moved. The memory is a part of the trainer's state.

    Steps under a rule run on the plain path, unless its ``update`` and ``observe`` are marked with the name of a rule
    that the compiled kernels know, as those of :class:`rplvq.schedules.AdaptiveStep` are.
    """

    def init(self, prototypes: Prototypes) -> MemoryT:
        """Return the memory for K prototypes that have not moved yet."""

    def update(self, memory: MemoryT, gradient_norm: float, epoch: int, n_epochs: int) -> tuple[MemoryT, float]:
        """Return the new memory and the size of this step, given the norm of its gradient over all prototypes."""

    def observe(self, memory: MemoryT, manifold: AnyManifold, prototypes: Prototypes) -> MemoryT:
        """Return the new memory after the prototypes have moved."""

    def resize(self, memory: MemoryT, rebuild: Callable[[Array], Array]) -> MemoryT:
        """Return the memory after prototypes changed; ``rebuild(codes)`` adds and removes the same rows of codes."""


@runtime_checkable
class Initializer(Protocol):
    """The choice of the first prototypes."""

    def __call__(
        self, manifold: AnyManifold, codes: Array, targets: Array, n_classes: int, rng: np.random.Generator,
        sample_weight: Array | None = None,
    ) -> tuple[Prototypes, Array]:  # fmt: skip
        """Choose K prototypes and their labels.

        Parameters
        ----------
        manifold : Manifold
            The geometry of the codes.
        codes : ndarray of shape (N, ...)
            Encoded samples.
        targets : ndarray of shape (N,) or (N, C)
            As for :class:`Cost`, with C = ``n_classes``.
        n_classes : int
            Number of classes.
        rng : numpy.random.Generator
            Source of all randomness.
        sample_weight : ndarray of shape (N,), optional
            Weight of each sample; passed only if there are weights.

        Returns
        -------
        prototypes, labels : Prototypes and ndarray of int of shape (K,)
            K prototypes, and the class index of each.
        """
