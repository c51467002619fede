"""Recenter: moves the Riemannian mean of each group of samples, such as a session, to the identity."""

import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Self
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rplvq.arrays import (
    MatrixTransformer,
    check_groups,
    congruence,
    encoded,
    invsqrtm,
    matrix_size,
    one_type,
    parts_of,
    same_type,
    single_blas_thread,
    stacked,
    subset,
)
from rplvq.io import probe_like
from rplvq.manifolds import AffineInvariant, riemannian_mean
from rplvq.parts import library_estimator, require_count, require_number
from rplvq.protocols import Array, ArrayLike


def _answers(model: BaseEstimator) -> list[Array]:
    """Return a matrix as it is re-centred at each mean, a number for the names of the groups, and their sizes."""
    fitted = vars(model)  # only a fit with online=True has these two
    running = fitted.get("running_", {}).values()
    start = [fitted["start_"]] if "start_" in fitted else []
    means = np.stack([*model.means_, *start, *(mean for mean, _ in running)])
    probe = probe_like(means)
    names = np.array([crc32(repr(model.groups_.tolist()).encode())])
    counts = np.array([*model.sizes_, *(count for _, count in running)])
    return [probe, congruence(probe, invsqrtm(means)), means.sum(axis=2), names, counts]  # sums read both triangles


@library_estimator(answers=_answers)
class Recenter(MatrixTransformer):
    """Transformer ``X -> A^-1/2 X A^-1/2``, where A is the affine-invariant mean of the group of X.

    Covariances of different sessions or subjects lie in different places, because electrodes, impedances and brains
    differ. This congruence keeps all affine-invariant distances within a group and moves its mean to the identity
    (Zanini et al. 2018, doi:10.1109/TBME.2017.2742541, who take A from the trials at rest).

    Parameters
    ----------
    tol : float, default=1e-9
        Tolerance of the mean: length of the mean logarithm over the root mean squared distance.
    max_iter : int, default=200
        Maximum number of passes over the data for a mean.
    online : bool, default=False
        Whether a group that fit did not meet, or that partial_fit has met since, is re-centred sample by sample, each
        at a running mean of the samples before it.
    prior_weight : float, default=10
        Number of samples that ``start_`` counts for in the running mean of a group that fit did not meet.
    horizon : float or None, default=50
        Number of samples over which a running mean forgets: each sample moves it at least 1 / horizon of the way. It is
        then as steady, and lags as far behind, as the mean of the latest 2 * horizon samples. None forgets nothing.

    Attributes
    ----------
    groups_ : ndarray of shape (G,)
        Groups in fit, sorted; one None if fit was given no groups.
    means_, sizes_ : ndarray of shape (G, n, n) and (G,)
        Their means, in the units of X, and numbers of samples.
    start_ : ndarray of shape (n, n)
        With ``online``, the start of running means: the mean of ``means_`` weighted by ``sizes_``.
    running_ : dict
        With ``online``, the running mean (n, n) and number of samples, with those of fit, of each group met since fit.

    Notes
    -----
    Without ``online``, a new group is re-centred at the mean of those of its samples that are passed to transform
    together. This is transductive: it needs no labels, but a batch that is large enough for its mean to represent the
    session. The proportions of the classes should be similar in all sessions, because the mean depends on them.

    With ``online=True`` a new group is re-centred with past samples alone. Its running mean starts at ``start_`` and
    moves along the geodesic towards each sample in turn, ``A_t = A_{t-1} #_s X_t`` by the share
    ``s = 1 / min(w + t, h)``, with the prior weight w and the horizon h. Sample t is re-centred by A_{t-1}. transform
    takes the samples of a call in their order and does not store the running mean; partial_fit stores it.
    :class:`StreamingPipeline` does these steps together with those of a classifier.

    A group in fit is re-centred at its stored mean until partial_fit gets more of its samples. Its running mean begins
    there and counts the samples of fit, without a prior. A new name lets the mean of a new session follow it faster.

    Before fit, partial_fit with ``online`` does what fit does. All methods raise ValueError, before anything is
    changed, if a matrix is not positive definite or of another size, if a group is missing, or if a parameter is
    invalid. Those that compute a mean warn by ConvergenceWarning if it does not reach ``tol``, and by UserWarning if a
    group has one sample only. They take

    X : array-like of shape (N, n, n)
        Symmetric or Hermitian positive definite matrices; ``y`` is ignored.
    groups : array-like of shape (N,), optional
        Session or subject of each sample, of any sortable type. By default all samples are one group. In a pipeline
        they are passed on by scikit-learn's metadata routing, which all methods request by default.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.preprocessing import Recenter
    >>> X, y = make_syn1(n_per_class=5, random_state=0)
    >>> session = np.tile(["monday", "tuesday"], len(X) // 2)
    >>> X[session == "tuesday"] *= 4.0  # another gain
    >>> centered = Recenter().fit_transform(X, groups=session)
    >>> monday, tuesday = (centered[session == day] for day in ("monday", "tuesday"))
    >>> bool(abs(np.trace(monday.mean(axis=0)) / np.trace(tuesday.mean(axis=0)) - 1) < 0.1)
    True

    In a pipeline, with a new session at the end:

    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     pipeline = make_pipeline(Recenter(), RiemannianLVQ(max_epochs=2, random_state=0))
    ...     labels = pipeline.fit(X, y, groups=session).predict(2.0 * X, groups=np.full(len(X), "wednesday"))
    >>> labels.shape
    (20,)
    """

    # Pipelines pass groups on to these methods without a call of set_fit_request and set_transform_request.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"groups": True}  # noqa: RUF012
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        tol: float = 1e-9,
        max_iter: int = 200,
        online: bool = False,
        prior_weight: float = 10.0,
        horizon: float | None = 50,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.online = online
        self.prior_weight = prior_weight
        self.horizon = horizon

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Learn the mean of each group, and return self."""
        with single_blas_thread(matrix_size(X)):
            self._check_parameters()
            codes, names, members = read(self, X, groups)
            means = np.stack([self._mean(subset(codes, rows), name) for name, rows in members.items()])
            sizes = np.array([len(rows) for rows in members.values()])
            if self.online:
                weights = sizes.astype(float)
                start = riemannian_mean(AffineInvariant(), means, weights, tol=self.tol, max_iter=self.max_iter).code
                self.start_ = start
                self.running_ = dict[object, tuple[Array, int]]()
            self.groups_ = names
            self.means_ = means
            self.sizes_ = sizes
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Update the running means by the next samples in order, and return self; ValueError after an offline fit."""
        if self.online and not hasattr(self, "groups_"):
            return self.fit(X, y, groups=groups)
        check_is_fitted(self)
        with single_blas_thread(matrix_size(X)):
            if not (self.online and hasattr(self, "running_")):
                raise ValueError("partial_fit needs a fit with online=True: without it groups have no running mean")
            codes, _, members = read(self, X, groups, self.groups_)
            running = dict(self.running_)
            for name, rows in members.items():
                # Only the mean after the last sample is kept.
                running[name] = deque(self._running_means(name, subset(codes, rows)), maxlen=1).pop()
            self.running_ = running
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None, groups: ArrayLike | None = None) -> Array:
        """Return what :meth:`transform` makes of the samples (N, n, n) after :meth:`fit`."""
        return np.asarray(self.fit(X, y, groups=groups).transform(X, groups=groups))

    def transform(self, X: ArrayLike, groups: ArrayLike | None = None) -> Array:
        """Return ``A^-1/2 X A^-1/2`` (N, n, n), exactly Hermitian and without units, with A as the Notes say."""
        check_is_fitted(self)
        with single_blas_thread(matrix_size(X)):
            codes, _, members = read(self, X, groups, self.groups_)
            running = getattr(self, "running_", {})
            kind = np.result_type(codes, self.means_, *(mean for mean, _ in running.values()))
            result = np.empty(codes.shape, dtype=kind)
            known = self.groups_.tolist()
            for name, rows in members.items():
                own = subset(codes, rows)
                if self.online and (name not in known or name in running):
                    for row, code, (mean, _) in zip(rows, own, self._running_means(name, own), strict=False):
                        result[row] = congruence(code, invsqrtm(mean))
                    continue
                mean = self.means_[known.index(name)] if name in known else self._mean(own, name)
                whitening = invsqrtm(mean)
                for part in parts_of(own):
                    result[rows[part]] = congruence(own[part], whitening)
            return result

    def _check_parameters(self) -> None:
        require_number("tol", self.tol, finite=True)
        require_count("max_iter", self.max_iter, 1)
        if not isinstance(self.online, (bool, np.bool_)):
            raise ValueError(f"online must be True or False, got {self.online!r}")
        require_number("prior_weight", self.prior_weight, closed=True, finite=True)
        if self.horizon is not None:
            require_number("horizon", self.horizon, 1, closed=True, finite=True, words=" or None")

    def _running_means(self, name: object, codes: Iterable[Array]) -> Iterator[tuple[Array, int]]:
        """Yield the running mean of a group and its number of samples, before each of ``codes`` and after the last."""
        stored = dict(zip(self.groups_.tolist(), zip(self.means_, self.sizes_.tolist(), strict=True), strict=True))
        mean, count = (stored | self.running_).get(name, (self.start_, 0))
        prior = 0.0 if name in stored else self.prior_weight
        yield mean, count
        manifold = AffineInvariant()
        horizon = np.inf if self.horizon is None else self.horizon
        for code in codes:
            count += 1
            share = np.array([[1.0 / min(prior + count, horizon)]])
            mean = np.asarray(manifold.move(manifold.connect(mean[None], code[None]), share))[0]  # on the geodesic
            yield mean, count

    def _mean(self, codes: Array, name: object) -> Array:
        if len(codes) == 1:
            what = "which becomes the identity and carries no information: pass more of its samples together"
            warnings.warn(f"group {name!r} has one sample, {what}", UserWarning, stacklevel=4)
        return riemannian_mean(AffineInvariant(), codes, tol=self.tol, max_iter=self.max_iter).code


def read(
    estimator: BaseEstimator, X: ArrayLike, groups: ArrayLike | None, known: Array | None = None
) -> tuple[Array, Array, dict[object, Array]]:
    """Return checked matrices (N, n, n), the sorted names (G,) of their groups, or None, and the rows of each by name.

    Size and type are compared with those in fit, whose groups are ``known``; fit passes None, and sets the size.
    """
    X = stacked(X)
    codes = encoded(AffineInvariant(), X)
    names = np.array([None], dtype=object)
    index = np.zeros(len(codes), dtype=int)
    if groups is not None:
        array = check_groups(groups, len(codes))
        if array.dtype.kind == "M":
            array = array.astype("datetime64[us]")  # so that the same date in another unit is the same group
        names, index = np.unique(array, return_inverse=True)
    validate_data(estimator, X, skip_check_array=True, reset=known is None)
    if known is not None and known.tolist() != [None]:
        if groups is None:
            remedy = "pass groups, with a new name for a new session"
            raise ValueError(f"groups is None, but fit was given groups, {known.tolist()}: {remedy}")
        named = one_type(groups, "groups", "group")
        if not same_type(named, known):
            first = named.ravel().tolist()[0]
            raise ValueError(f"groups[0] is {first!r}, but fit was given groups of another type, {known.tolist()}")
    return codes, names, {name: np.flatnonzero(index == g) for g, name in enumerate(names.tolist())}
