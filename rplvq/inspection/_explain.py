"""Explains predictions: which parts of a sample make it nearer to a prototype of one class than to those of others."""

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import adjoint, first_bad, index_labels
from rplvq.capabilities import Components, Decomposed, Spectrum, provides
from rplvq.exceptions import PointError
from rplvq.protocols import AnyManifold, Array, ArrayLike, Prototypes
from rplvq.training import new_codes


@attrs.frozen(eq=False, kw_only=True)
class Explanation:
    """Why a sample is nearer to a prototype of one class than to those of all other classes.

    :func:`rplvq.explain` has the formulas. Positive shares of the margin speak for ``label``.

    Parameters
    ----------
    label, other_label : object
        The explained class, and the class of the nearest prototype among all other classes.
    own, other : int
        Indices in ``prototypes_`` of the nearest prototype of the explained class, and of the nearest other one.
    margin : float
        Difference of the squared distances. It is positive if the nearest of all prototypes is of the explained class.
    shares : ndarray of shape (n,), (n, n), (d,) or (F,)
        Signed parts of the margin: one per component under the affine-invariant metric; one per entry of the logarithm
        (Log-Euclidean) or of the Cholesky factor (log-Cholesky); one per feature of a vector; one per factor of a
        product. A symmetric map (n, n) holds each entry off the diagonal twice.
    channels : ndarray of shape (n,), (d,) or (F,)
        The margin split by the rows of the matrices, which stand for channels; for vectors and products, the shares.
    ratios, powers : ndarray of shape (n,), or None
        Power of the other prototype (ascending) and of the sample in each filter, in units of the own prototype's.
    filters, patterns : ndarray of shape (n, n), or None
        Spatial filters and patterns of the components, as columns. They separate the two prototypes, and do not depend
        on the sample. None where the shares belong to entries.
    to_own, to_other : Components
        Each squared distance as a sum with its own filters (:class:`rplvq.capabilities.Components` without axes B, K).

    Examples
    --------
    >>> from rplvq import RiemannianLVQ, explain
    >>> X = np.array([np.diag([1.0, 1.0]), np.diag([np.e, 1.0])])
    >>> (one,) = explain(RiemannianLVQ(max_epochs=0).fit(X, ["rest", "move"]), X[:1])
    >>> one.label, one.margin, one.order  # component 1, the first in this order, carries the whole margin
    ('rest', 1.0, array([1, 0]))
    """

    label: object
    other_label: object
    own: int
    other: int
    margin: float
    shares: Array = attrs.field(repr=False)
    channels: Array = attrs.field(repr=False)
    ratios: Array | None = attrs.field(repr=False)
    powers: Array | None = attrs.field(repr=False)
    filters: Array | None = attrs.field(repr=False)
    patterns: Array | None = attrs.field(repr=False)
    to_own: Components = attrs.field(repr=False)
    to_other: Components = attrs.field(repr=False)

    @property
    def order(self) -> Array:
        """Return the indices of the shares by decreasing absolute value; for a map (n, n), in the flat array."""
        return np.argsort(-np.abs(self.shares), axis=None, kind="stable")


def explain(model: BaseEstimator, X: ArrayLike, target: object = None) -> list[Explanation]:
    """Split the margin of each sample into shares that add up to it, up to rounding.

    The margin of a sample X is ``d^2(X, W_other) - d^2(X, W_own)``, where W_own is the nearest prototype of the
    explained class, and W_other the nearest prototype of all other classes.

    Parameters
    ----------
    model : RiemannianLVQ
        A fitted classifier. Its manifold must offer ``components`` (:class:`rplvq.capabilities.Decomposed`), as the
        affine-invariant metric, the Log-Euclidean ones, log-Cholesky, Frobenius and vectors do.
    X : array-like of shape (N, n, n), or (N, d) for vectors
        Samples. The answer holds about ``5 n^2`` numbers per sample.
    target : label, array-like of N labels, or None, default=None
        The class to be explained: one label for all samples, or one per sample; by default the predicted class. For a
        class other than that of the nearest prototype the margin is negative.

    Raises
    ------
    TypeError, ValueError
        If the model is no classifier with prototypes, for example a pipeline; if a sample is invalid; if a label is
        unknown or has no prototype; if only one class has prototypes; if the manifold has no ``components``; or if,
        with ``decision="posterior"``, a predicted class is not that of the nearest prototype.

    Notes
    -----
    **Affine-invariant metric.** The squared distance to one prototype is a sum over the generalised eigenvalues of
    ``X v = lam W v``. The two sums, ``to_own`` and ``to_other``, have different eigenvectors, so ``shares`` compares
    them in common ones: those of ``W_other v = mu W_own v`` with ``v^H W_own v = 1``. For any basis V (n, n),

    ``d^2(X, W) = tr M^2 = sum_c [V^-1 M^2 V]_cc`` with ``M = log(W^-1 X)``,

    so that ``share_c = [V^-1 (M_other^2 - M_own^2) V]_cc``. With V = I the same formula gives ``channels``. If all
    sensors are mixed by an invertible A, shares stay the same, filters become ``A^-H v`` and patterns ``A W v``, and
    ``channels`` change. Haufe et al. 2014 (doi:10.1016/j.neuroimage.2013.10.067) explain how to read filters and
    patterns. The sign of a filter is arbitrary. If two ratios mu are nearly equal, only the sum of their shares and the
    space of their filters are certain.

    **Flat metrics.** A share is ``|x - w_other|^2 - |x - w_own|^2`` for one entry.

    Examples
    --------
    The classes differ in the power of the second of three mixed sources, and its column of the mixing matrix is the
    pattern of the component with the largest share.

    >>> from rplvq import RiemannianLVQ, explain
    >>> mixing = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 3.0]])
    >>> X = np.array([mixing @ np.diag([1.0, power, 1.0]) @ mixing.T for power in (1.0, 1.2, 4.0, 5.0)])
    >>> model = RiemannianLVQ(max_epochs=0).fit(X, ["low", "low", "high", "high"])
    >>> first = explain(model, X[:1])[0]
    >>> top = first.patterns[:, first.order[0]]
    >>> (top / top[0]).round(3) + 0.0
    array([1., 1., 0.])
    """
    manifold, prototypes, classes = _parts_of(model)
    X = X if hasattr(X, "shape") else np.asarray(X)
    codes = np.asarray(manifold.encode(X))
    if codes.shape[1:] != (shape := np.shape(prototypes)[1:]):
        raise ValueError(f"X holds points of shape {codes.shape[1:]}, the prototypes have {shape}")
    sqdist = manifold.sqdist(prototypes, codes)
    wanted = _wanted(model, X, target)
    wanted = classes[sqdist.argmin(axis=1)] if wanted is None else wanted
    is_own = classes == wanted[:, None]
    own, other = (np.where(mask, sqdist, np.inf).argmin(axis=1) for mask in (is_own, ~is_own))
    if target is None:
        _require_decision(sqdist, own, other, model)
    explanations: dict[int, Explanation] = {}
    for pair in sorted(set(zip(own.tolist(), other.tolist(), strict=True))):
        rows = np.flatnonzero((own == pair[0]) & (other == pair[1]))
        explanations.update(zip(rows.tolist(), _explained(model, prototypes, pair, codes[rows]), strict=True))
    return [explanations[row] for row in range(len(codes))]


def _parts_of(model: BaseEstimator) -> tuple[AnyManifold, Prototypes, Array]:
    """Return the manifold of a fitted model, its prototypes and their class indices (K,); refuse what has no split."""
    if not hasattr(model, "decision") or not hasattr(model, "partial_fit"):
        remedy = "of a pipeline, pass the last step with the samples that reach it, explain(pipeline[-1], "
        remedy += "pipeline[:-1].transform(X))"
        raise TypeError(f"model must be a fitted RiemannianLVQ, got {type(model).__name__}: {remedy}")
    check_is_fitted(model, "state_")
    manifold = model.trainer_.manifold
    labels = index_labels(model.prototype_labels_, model.classes_, "labels")
    if not provides(manifold, Decomposed):
        raise ValueError(
            f"model has the manifold {manifold!r}, which offers no components: its squared distance is not known as a "
            "sum of parts. Train with AffineInvariant or LogEuclidean, or write the method components of "
            "rplvq.capabilities.Decomposed for a manifold of your own"
        )
    if (labels == labels[0]).all():
        label = model.prototype_labels_.tolist()[0]
        raise ValueError(f"model has prototypes of class {label!r} only: there is no margin")
    return model.trainer_.manifold, model.state_.prototypes, labels


def _wanted(model: BaseEstimator, X: Any, target: Any) -> Array | None:
    """Return class indices (N,) to be explained, or (1,) for all; None means those of the nearest prototypes."""
    if target is None:
        return index_labels(model.predict(X), model.classes_, "y") if model.decision == "posterior" else None
    wanted = index_labels([target] if np.ndim(target) == 0 else target, model.classes_, "target")
    if np.ndim(target) and len(wanted) != len(X):
        raise ValueError(f"target has {len(wanted)} labels for {len(X)} samples of X: give one label, or one for each")
    lacking = ~np.isin(model.classes_[wanted], model.prototype_labels_)
    if (index := first_bad(lacking)) is not None:
        label = model.classes_[wanted].tolist()[index]
        raise ValueError(f"target[{index}] is {label!r}, a class that has no prototype yet")
    return wanted


def _require_decision(sqdist: Array, own: Array, other: Array, model: BaseEstimator) -> None:
    """Raise PointError at the first sample whose predicted class is not that of its nearest prototype."""
    rows = np.arange(len(sqdist))
    if (index := first_bad(sqdist[rows, own] > sqdist[rows, other])) is not None:
        first, second = model.prototype_labels_[[own[index], other[index]]].tolist()
        raise PointError(
            index,
            f"is predicted as {first!r} by its posterior, but its nearest prototype is of class {second!r}: the margin "
            f"of distances does not explain this prediction. Pass target={first!r} to see the margin of that class all "
            "the same, or train with decision='nearest'",
        )


def _in_basis(split: Components, spectrum: Spectrum, filters: Array, patterns: Array) -> Array:
    """Return the parts ``[V^-1 M^2 V]_cc`` (B, n) of squared distances, for ``V = filters`` and ``V^-1 = patterns^H``.

    ``M = log(W^-1 X) = F diag(log lam) P^H`` has the filters F and patterns P of the spectrum, with ``F^-1 = P^H``.
    """
    into = adjoint(patterns) @ spectrum.filters
    out = adjoint(spectrum.patterns) @ filters
    return np.asarray((into * split.shares[..., None, :] * out.swapaxes(-1, -2)).real.sum(axis=-1))


def _explained(
    model: BaseEstimator, prototypes: Prototypes, pair: tuple[int, int], codes: Array
) -> Iterator[Explanation]:
    """Yield the explanations of samples (B, ...) that share the own and the other prototype."""
    manifold = model.trainer_.manifold
    own, other = pair
    points = np.asarray(prototypes)
    # A single prototype keeps whatever state it shares with the others.
    first, second = (new_codes(prototypes, points[[index]]) for index in pair)
    near, far = (_rows(manifold.components(one, codes), np.s_[:, 0]) for one in (first, second))
    if near.spectrum is None or far.spectrum is None:
        shares = far.shares - near.shares
        common = None
        powers = [None] * len(codes)
        channels = shares.reshape(*shares.shape[:2], -1).sum(axis=-1)
    else:
        two = manifold.components(first, points[[other]])
        common = Spectrum(*(part[0, 0] for part in two.spectrum))
        same = np.eye(codes.shape[-1])
        shares, channels = (
            _in_basis(far, far.spectrum, *basis) - _in_basis(near, near.spectrum, *basis)
            for basis in (common[1:], (same, same))
        )
        overlap = np.abs(adjoint(common.filters) @ near.spectrum.patterns) ** 2
        powers = (overlap @ near.spectrum.eigenvalues[..., None])[..., 0]
    for row in range(len(codes)):
        to_own = _rows(near, row)
        to_other = _rows(far, row)
        yield Explanation(
            label=model.prototype_labels_.tolist()[own],
            other_label=model.prototype_labels_.tolist()[other],
            own=own,
            other=other,
            margin=float(to_other.shares.sum() - to_own.shares.sum()),
            shares=shares[row],
            channels=channels[row],
            ratios=common and common.eigenvalues,
            powers=powers[row],
            filters=common and common.filters,
            patterns=common and common.patterns,
            to_own=to_own,
            to_other=to_other,
        )


def _rows(split: Components, index: int | tuple[slice, int]) -> Components:
    spectrum = split.spectrum and Spectrum(*(part[index] for part in split.spectrum))
    return Components(split.shares[index], spectrum)
