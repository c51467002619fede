"""What a part may offer beyond its protocol in :mod:`rplvq.protocols`.

Each capability is a small protocol that one part of the library asks for by :func:`provides`, that is by the names of
its members. They follow in this order: those of manifolds, of costs, of schedules and step sizes, of initializers, of
rules of growth, of callbacks, and of classifiers.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from rplvq.protocols import AnyManifold, Array, ArrayLike, Cost, Prototypes, Schedule

if TYPE_CHECKING:
    from typing_extensions import TypeIs  # in typing from Python 3.13 on

CapabilityT = TypeVar("CapabilityT")


@cache
def _members_of(capability: type) -> tuple[list[str], list[str]]:
    """Return the names of the methods and of the properties that a protocol and those that it extends state."""
    stated = {name: member for each in capability.__mro__ for name, member in vars(each).items()}
    public = [name for name in stated if not name.startswith("_")]
    properties = [name for name in public if isinstance(stated[name], property)]
    return [name for name in public if name not in properties], properties


def provides(part: object, capability: type[CapabilityT]) -> "TypeIs[CapabilityT]":
    """Whether a part has all members that a capability states.

    It asks the part itself, and not its class, so that a wrapper may pass on what it wraps. A subclass takes a method
    away by setting it to None; of a property, None is a value.

    Examples
    --------
    >>> from rplvq import BuresWasserstein, LogEuclidean
    >>> provides(BuresWasserstein(), Scaled), provides(LogEuclidean(), Scaled)
    (True, False)
    """
    methods, properties = _members_of(capability)  # type: ignore[arg-type]
    has_methods = all(getattr(part, name, None) is not None for name in methods)
    return has_methods and all(hasattr(part, name) for name in properties)


class Additive(Protocol):
    """A manifold whose ``move`` is a sum over samples and then a step, so that parts of a batch can be summed apart."""

    def pull(self, geodesics: Any, weights: Array) -> Array:
        """Return the tangents ``sum_b weights[b, k] Log_k(x_b)``, shape (K, ...).

        The results for several batches add up, if these were connected to the same prototypes object: the coordinates
        are linear in the tangent.
        """

    def exp(self, prototypes: Prototypes, tangents: Array) -> Prototypes:
        """Return the prototypes moved along tangents; with ``pull(geodesics, weights)`` as tangents it is ``move``."""


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


class Scaled(Protocol):
    """A manifold whose distances carry units; the default step size is multiplied by the unit."""

    def unit(self, codes: Array, weights: Array | None = None) -> float:
        """Return a squared length that grows with the scale of the weighted data (N, ...), such as a mean variance."""


class Bounded(Protocol):
    """A manifold on which long steps are not exact in float64; the trainer shortens steps to this length."""

    @property
    def max_step_length(self) -> float:
        """The longest step, in the manifold's own distance."""


class Referenced(Protocol):
    """A manifold whose coordinates depend on a reference point that is learned from the training samples.

    An estimator calls ``referenced`` at the beginning of each new fit, and in the first call of ``partial_fit``, and
    uses the manifold that it returns. Before that, ``encode`` raises ValueError.
    """

    @property
    def ambient(self) -> AnyManifold:
        """A manifold without a reference, which checks the points; ``referenced`` takes its codes."""

    def referenced(
        self, points: ArrayLike, groups: Array | None = None, weights: Array | None = None
    ) -> tuple[AnyManifold, Array]:
        """Return this manifold with its reference, and the codes (N, ...) of the points in that manifold.

        The ``points`` (N, ...), an array or LazyRows, are codes of ``ambient``. Their order must not change the result,
        except by rounding. ``groups`` (N,) are a partition of them, such as their classes, and ``weights`` (N,) their
        multiplicities. ValueError is raised if no reference can be learned.
        """


class Supervised(Protocol):
    """A manifold that also learns from the groups of the points, which are the classes of the training samples.

    Each trial within ``fit`` learns again without the samples that it holds out, whose loss would else be too low.
    """

    def relearned(
        self, kept: Array, held: Array, groups: Array, weights: Array | None = None
    ) -> tuple[AnyManifold, Array, Array]:
        """Return a manifold that is learned from the codes ``kept`` (N, ...) only, and all codes in that manifold.

        ``held`` (M, ...) are the codes of the held-out samples. ``groups`` and ``weights`` (N,) belong to ``kept``.
        What is learned without groups may stay as it is.
        """


class Spectrum(NamedTuple):
    """Generalised eigenvalues and eigenvectors of samples X and prototypes W: ``X v = lam W v`` with ``v^H W v = 1``.

    The eigenvalues are the power of the sample in each filter, in units of the power of the prototype, and ascend. The
    eigenvectors v_i (filters) and ``W v_i`` (patterns) are columns, and ``filters`` has the inverse ``patterns^H``.
    """

    eigenvalues: Array  # (B, K, n)
    filters: Array  # (B, K, n, n)
    patterns: Array  # (B, K, n, n)


class Components(NamedTuple):
    """The squared distances of B samples to K prototypes as sums: ``shares[b, k].sum()`` is ``sqdist[b, k]``.

    If there is a spectrum, the shares belong to its eigenvalues. Without one, an entry stands for the same coordinate
    under all prototypes, such as one entry of a logarithm or one factor of a product.
    """

    shares: Array  # (B, K, ...), with a spectrum (B, K, n)
    spectrum: Spectrum | None = None


class Decomposed(Protocol):
    """A manifold that can split its squared distances into sums of meaningful parts, which ``explain`` shows."""

    def components(self, prototypes: Prototypes, samples: Array) -> Components:
        """Split the squared distances of samples (B, ...) to K prototypes, shape (B, K), into sums."""


class AtReference(Protocol):
    """A manifold whose coordinates are tangent vectors at one point."""

    @property
    def reference(self) -> Array | None:
        """The point, None before it is learned."""


class Whitened(Protocol):
    """A manifold whose coordinates may be whitened; class means are then a discriminant already."""

    @property
    def covariance(self) -> object:
        """The covariance by which coordinates are whitened, None if they are not."""


class Compilable(Protocol):
    """A manifold with an option for compiled steps; without this option it is treated as with "auto"."""

    @property
    def compiled(self) -> bool | Literal["auto"]:
        """True for compiled steps, False for plain ones, "auto" for compiled ones where they are faster."""


class Probabilistic(Protocol):
    """A cost that computes class probabilities itself; for others, those of the mixture with equal weights are used."""

    def log_proba(self, sqdist: Array, labels: Array, sigma2: float) -> Array:
        """Return the class log-posterior (B, C) at squared distances (B, K)."""


class WithPriors(Protocol):
    """A cost whose posterior has class priors, which the rules that choose sigma2 read."""

    @property
    def priors(self) -> tuple[float, ...] | None:
        """The priors of the C classes, None for equal ones."""


class BoundedSlope(Protocol):
    """A cost that states how steep it is, from which the default step follows."""

    def largest_slope(self, sigma2: float) -> float | None:
        """Return the largest absolute slope of any sample, None if it is not known."""


class ForSomeClasses(Protocol):
    """A cost that holds one number per class. By this method it works before all classes of a stream have appeared."""

    def restrict_to_classes(self, classes: Array) -> Cost:
        """Return the same cost for the classes with these indices (M,) only."""


class OfSigma2(Schedule, Protocol):
    """A schedule of shares of sigma2 in place of step sizes, such as :class:`rplvq.schedules.Share`."""

    @property
    def of_sigma2(self) -> bool:
        """True."""


class StepOfShare(Schedule, Protocol):
    """A schedule of step sizes that follow from a share and sigma2."""

    def of_share(self, share: float, sigma2: float) -> float:
        """Return the step size of one share at one sigma2."""

    def largest_weight(self, step_size: float, sigma2: float) -> float:
        """Return the cap on the weights of a step of this size."""


class WithAmount(OfSigma2, Protocol):
    """A schedule of shares that states how much it trains, which a :class:`rplvq.selection.Choice` records."""

    @property
    def amount(self) -> float:
        """Number of epochs times the first share."""


class WithStart(Schedule, Protocol):
    """A schedule whose first value may be left to the default."""

    @property
    def start(self) -> float | None:
        """Value before training, None for the default."""


class WithSchedule(Protocol):
    """A step size that holds another one, such as :class:`rplvq.schedules.StepSize`."""

    @property
    def schedule(self) -> object:
        """The step size itself, as a user gives it."""


class Capped(Protocol):
    """A step size with a cap on weights; others have the cap 1."""

    @property
    def max_weight(self) -> float | None:
        """Largest absolute weight of a (sample, prototype) pair, None for no cap."""


class PlacesMeans(Protocol):
    """An initializer that may place single prototypes of classes at their means, which are then computed together."""

    @property
    def takes_means(self) -> bool:
        """Whether it places them so."""


class PerClass(Protocol):
    """An initializer that is told the number of prototypes of each class."""

    @property
    def per_class(self) -> object:
        """One number for all classes or one for each, None for that of the estimator."""


class Windowed(Protocol):
    """A rule of growth that sees the latest samples of a stream; without it, a rule sees those of the call."""

    @property
    def window(self) -> int:
        """Number of samples to keep."""


class BeforeFit(Protocol):
    """A callback that prepares something, such as a file, and raises an error before training if it can't."""

    def before_fit(self) -> None:
        """Prepare the fit."""


class Rejecting(Protocol):
    """A fitted classifier that rejects samples and says why, such as :class:`rplvq.RejectOption`."""

    @property
    def estimator_(self) -> Any:
        """The classifier that gives every sample a label."""

    def reasons(self, X: ArrayLike, **params: object) -> Array:
        """Return why samples are rejected, shape (N,); "" for those that have a label."""

    def without_rejection(self) -> Any:
        """Return a copy that gives every sample a label."""
