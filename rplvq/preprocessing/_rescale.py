"""Rescale: gives every group of re-centred samples the same dispersion about the identity."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import logm, matrix_size, parts_of, powm, single_blas_thread, subset
from rplvq.preprocessing._groups import GroupTransformer, read, require_online, run_on, transformed
from rplvq.protocols import Array

IDENTITY_SHARE = 1e-6
"""Below this share of the common dispersion, the samples of a group count as the identity: they differ by rounding."""
IDENTITY_DISPERSION = 1e-8
"""Below this common dispersion, all samples count as the identity: Recenter leaves rounding errors of this size."""
NEAR = 1e-4
"""A mean logarithm whose squared length is below this is near enough to 0 for any dispersion."""


class Rescale(GroupTransformer):
    """Transformer ``X -> X^s`` of re-centred samples, with s such that every group has the same dispersion.

    The dispersion of a group is its mean squared affine-invariant distance to the identity, ``mean_i ||log X_i||_F^2``.
    The power multiplies all distances to the identity by s. This is the second step of Riemannian Procrustes analysis
    (Rodrigues, Jutten and Congedo 2019, doi:10.1109/TBME.2018.2889705), after :class:`Recenter` and before
    :class:`Rotate`, and needs no labels.

    Parameters
    ----------
    dispersion : float, optional
        The common dispersion. By default it is that of all samples in fit together, so that one group alone stays as it
        is. pyRiemann's ``TLScale`` takes 1.
    online : bool, default=False
        Whether a group that fit did not meet, or that partial_fit has met since, is rescaled sample by sample, each by
        the running dispersion of the samples before it (True). If False, a group that fit did not meet is rescaled by
        the dispersion of its samples in the call (transductive).
    prior_weight : float, default=10
        Number of samples that ``start_`` counts for in the running dispersion of a group that fit did not meet.

    Attributes
    ----------
    groups_ : ndarray of shape (G,)
        Groups in fit, sorted; one None if fit was given no groups.
    dispersions_ : ndarray of shape (G,)
        Their dispersions.
    sizes_ : ndarray of shape (G,)
        Their numbers of samples.
    dispersion_ : float
        The common dispersion.
    start_ : float
        With ``online``, the start of running dispersions: ``dispersion_``.
    running_ : dict
        With ``online``, the running dispersion and the number of samples, those of fit included, of each group that
        partial_fit has met since fit.
    n_features_in_ : int
        n.

    Notes
    -----
    Groups that fit met are rescaled by their stored dispersion, and new ones by their own, as in :class:`Recenter`,
    whose notes on transductive and online use hold here, too. Online, the running dispersion of a new group is
    ``D_t = D_{t-1} + (||log X_t||^2 - D_{t-1}) / (w + t)`` with the prior weight w, and sample t is raised to
    ``s = sqrt(dispersion_ / D_{t-1})``. That of a group in fit goes on from its stored dispersion, without a prior.

    A group whose dispersion is below 1e-6 of the common one holds the identity only, such as one sample after
    re-centring, and stays as it is.

    Before fit, partial_fit with ``online`` does what fit does. Otherwise partial_fit and transform raise
    NotFittedError. All methods raise ValueError, before anything is changed, if a matrix is not positive definite or of
    another size, if a group is missing, if a parameter is invalid, or if samples were not re-centred: if more than half
    of the dispersion of a group is the squared distance of its mean logarithm to 0. With ``online`` and without
    ``dispersion``, fit also raises ValueError if all samples are the identity. The methods take

    X : array-like of shape (N, n, n)
        Symmetric or Hermitian positive definite matrices, centred at the identity.
    y : None
        Ignored.
    groups : array-like of shape (N,), optional
        Session or subject of each sample, as for :class:`Recenter`.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import Recenter, Rescale, RiemannianLVQ
    >>> from rplvq.arrays import powm
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=5, random_state=0)
    >>> session = np.tile(["monday", "tuesday"], len(X) // 2)
    >>> X[session == "tuesday"] = powm(X[session == "tuesday"], 2.0)
    >>> centered = Recenter().fit_transform(X, groups=session)
    >>> Rescale().fit(centered, groups=session).dispersions_.round(1)
    array([11.5, 35.1])
    >>> scaled = Rescale().fit_transform(centered, groups=session)
    >>> Rescale().fit(scaled, groups=session).dispersions_.round(1)
    array([23.3, 23.3])

    In a pipeline, with a new session at the end:

    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     pipeline = make_pipeline(Recenter(), Rescale(), RiemannianLVQ(max_epochs=2, random_state=0))
    ...     labels = pipeline.fit(X, y, groups=session).predict(2.0 * X, groups=np.full(len(X), "wednesday"))
    >>> labels.shape
    (20,)
    """

    def __init__(self, *, dispersion: float | None = None, online: bool = False, prior_weight: float = 10.0) -> None:
        self.dispersion = dispersion
        self.online = online
        self.prior_weight = prior_weight

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn the dispersion of each group, and the common one.

        Returns
        -------
        self : Rescale
        """
        with single_blas_thread(matrix_size(X)):
            self._check_parameters()
            codes, found = read(self, X, groups, reset=True)
            dispersions = np.array([_dispersion(subset(codes, rows), name) for name, rows in found.items()])
            sizes = np.array([len(rows) for rows in found.rows])
            common = self.dispersion
            if common is None:
                common = np.average(dispersions, weights=sizes)
                if self.online and common < IDENTITY_DISPERSION:
                    raise ValueError(
                        "all samples of fit are the identity, so that they have no dispersion to give to later ones: "
                        "fit more samples of each group, because Recenter moves a single one to the identity, or give "
                        "dispersion"
                    )
            if self.online:
                self.start_, self.running_ = float(common), dict[Any, tuple[float, int]]()
            self.groups_, self.dispersions_, self.sizes_ = found.names, dispersions, sizes
            self.dispersion_ = float(common)
        return self

    def partial_fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Update the running dispersion of each group by its next samples, in the order in which these came.

        Returns
        -------
        self : Rescale

        Raises
        ------
        ValueError
            Also if ``online`` was False in fit, or if no groups are given after a fit with groups.
        """
        if self.online and not hasattr(self, "groups_"):
            return self.fit(X, y, groups=groups)
        check_is_fitted(self)
        with single_blas_thread(matrix_size(X)):
            self.running_ = run_on(self, X, groups, self.dispersions_.tolist(), _next)
        return self

    def transform(self, X: Any, groups: Any = None) -> Array:
        """Raise each sample to the power of the running dispersion of its group, or else to the stored one.

        A group that has neither has the dispersion of its samples in this call, or with ``online`` a running one that
        begins at ``start_``.

        Returns
        -------
        ndarray of shape (N, n, n)
            ``X^s``, exactly Hermitian.

        Raises
        ------
        ValueError
            Also if no groups are given after a fit with groups.
        """
        check_is_fitted(self)
        with single_blas_thread(matrix_size(X)):
            return transformed(self, X, groups, self.dispersions_.tolist(), _dispersion, self._raising, _next)

    def _check_parameters(self) -> None:
        require_online(self.online, self.prior_weight)
        value = self.dispersion
        if value is not None and (isinstance(value, (bool, str)) or not 0 < value < np.inf):
            raise ValueError(f"dispersion must be a positive number or None, got {value!r}")

    def _raising(self, dispersion: float) -> Callable[[Array], Array]:
        """Return the function that raises samples (..., n, n) to the power of their dispersion."""
        power = float(np.sqrt(self.dispersion_ / dispersion)) if dispersion > IDENTITY_SHARE * self.dispersion_ else 1.0
        return lambda codes: powm(codes, power)


def _next(dispersion: float, share: float, code: Array) -> float:
    """Return the running dispersion after one more sample (n, n), which has this share in it."""
    return dispersion + share * (float(_lengths(code)) - dispersion)


def _lengths(codes: Array) -> Array:
    """Return ``||log X||_F^2`` of matrices (..., n, n)."""
    return np.asarray(np.sum(np.log(np.linalg.eigvalsh(codes)) ** 2, axis=-1))


def _dispersion(codes: Array, name: Any) -> float:
    """Return the dispersion of the samples (N, n, n) of a group; raise ValueError if they are not re-centred."""
    length, total = 0.0, np.zeros(1)
    for part in parts_of(codes):
        logs = logm(codes[part])
        length += float(np.sum(np.abs(logs) ** 2)) / len(codes)
        total = total + logs.sum(axis=0) / len(codes)
    offset = float(np.sum(np.abs(total) ** 2))
    if offset > max(0.5 * length, NEAR):
        group = "X" if name is None else f"group {name!r}"
        raise ValueError(
            f"{group} is not re-centred: its mean is farther from the identity ({offset**0.5:.3g}) than its samples "
            f"are from each other ({max(length - offset, 0.0) ** 0.5:.3g}). Put Recenter before Rescale"
        )
    return length
