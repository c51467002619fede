"""Rotate: turns re-centred samples of each source group so that its class means come near to those of the target."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import adjoint, check_labels, congruence, matrix_size, single_blas_thread, split_domains, subset
from rplvq.manifolds import AffineInvariant, riemannian_mean
from rplvq.preprocessing._groups import GroupTransformer, read, require_max_iter, require_prior_weight, transformed
from rplvq.preprocessing._procrustes import nearest_rotation
from rplvq.protocols import Array

Members = dict[Any, dict[int, Array]]
"""The rows of each class, by class index, of each group, by name."""


class Rotate(GroupTransformer):
    """Transformer ``X -> Q X Q^H``, where Q brings the class means of the group of X near to those of a target group.

    Recentred samples of different subjects may still differ by a rotation. This is the third step of
    Riemannian Procrustes analysis (Rodrigues, Jutten and Congedo 2019, doi:10.1109/TBME.2018.2889705), after
    :class:`Recenter` and :class:`Rescale`. It needs a few labelled samples of the target in fit, beside those of the
    other groups, the sources. Sources are turned to the target, so that samples of the target stay as they are.

    Parameters
    ----------
    target : object
        Name of the target group, such as a new subject.
    prior_weight : float, default=10
        Strength by which each Q is pulled to the identity, as a number of labelled samples of the target per class.
        With 0, Q follows the class means of a few samples as if these were exact, as pyRiemann's ``TLRotate`` does.
    tol : float, default=1e-6
        The iteration ends if no entry of Q changes by more.
    max_iter : int, default=2000
        Maximum number of iterations.

    Attributes
    ----------
    groups_ : ndarray of shape (G,)
        Groups in fit, sorted.
    rotations_ : ndarray of shape (G, n, n)
        Q of each group, orthogonal, or unitary for complex samples; that of the target is the identity.
    n_features_in_ : int
        n.

    Notes
    -----
    With the affine-invariant means M_c of the target and S_c of a source, over the classes c that both have,

    ``Q = argmin sum_c ||M_c - Q S_c Q^H||_F^2 + w / (m n) sum_c ||S_c - I||_F^2 ||Q - I||_F^2``

    over all unitary matrices (orthogonal ones, reflections included, for real samples), where w is ``prior_weight``,
    and m the mean number of samples of the target per class. Minimising this loss means maximising a convex function f
    of Q. Therefore ``Q <- polar(grad f(Q))``, the unitary factor of the polar decomposition, raises f. The gradient is
    extrapolated by Nesterov's momentum, which starts again from 0 where f would fall. The first Q is the identity or
    turns the eigenvectors of one S_c to those of M_c (Bhatia and Congedo 2019, doi:10.1016/j.laa.2018.11.008), where
    the loss is lowest. The iteration finds a local minimum, and an exact fit if there is one and if the eigenvalues of
    one S_c are distinct.

    A group that fit did not meet is taken as a further session of the target and stays as it is. Later samples of the
    target may therefore have a group of their own, such as "new, day 2". :class:`Recenter` and :class:`Rescale` then
    use the statistics of these samples, and not those of the few samples with labels. transform takes no labels: those
    of test samples cannot leak.

    All methods but fit raise NotFittedError before fit. They raise ValueError, before anything is changed, if a matrix
    is not positive definite or of another size, if a group or a label is missing, if ``target`` is no group in fit or
    the only one, if a source has no class of the target, or if a parameter is invalid. fit warns by ConvergenceWarning
    if ``max_iter`` iterations do not suffice. The methods take

    X : array-like of shape (N, n, n)
        Symmetric or Hermitian positive definite matrices, centred at the identity.
    y : array-like of shape (N,)
        Labels.
    groups : array-like of shape (N,)
        Group of each sample, of any sortable type. fit also takes groups from labels "group/label", as
        ``encode_domains`` of pyRiemann makes them, if ``groups`` is None.

    Examples
    --------
    Two sources are turned against the target, of which five samples per class have labels:

    >>> from rplvq import Recenter, RiemannianLVQ, Rotate
    >>> from rplvq.datasets import make_syn1
    >>> from scipy.stats import ortho_group
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> subject = np.tile(["anna", "ben", "new"], len(X) // 3)
    >>> for name, turn in zip(["anna", "ben"], ortho_group.rvs(10, size=2, random_state=0)):
    ...     X[subject == name] = turn @ X[subject == name] @ turn.T
    >>> X = Recenter().fit_transform(X, groups=subject)
    >>> train = (subject != "new") | (np.arange(len(X)) % 30 < 15)
    >>> rotate = Rotate("new")
    >>> turned = rotate.fit_transform(X[train], y[train], groups=subject[train])
    >>> test = rotate.transform(X[~train], groups=subject[~train])
    >>> means = RiemannianLVQ(max_epochs=0)
    >>> means.fit(X[train], y[train]).score(test, y[~train])
    0.8
    >>> means.fit(turned, y[train]).score(test, y[~train])
    0.9
    """

    def __init__(self, target: Any, *, prior_weight: float = 10.0, tol: float = 1e-6, max_iter: int = 2000) -> None:
        self.target = target
        self.prior_weight = prior_weight
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn the matrix Q of each group.

        Returns
        -------
        self : Rotate
        """
        with single_blas_thread(matrix_size(X)):
            self._check_parameters()
            if y is None:
                raise ValueError("y is None, but Rotate compares the class means of groups: pass labels")
            labels, domains = split_domains(y, groups)
            codes, found = read(self, X, domains, reset=True)
            classes, targets = check_labels(labels, len(codes))
            if targets.ndim == 2:
                raise ValueError(f"y has shape {targets.shape}: Rotate needs one label per sample, and no soft labels")
            members = {
                name: {c: rows[targets[rows] == c] for c in np.unique(targets[rows]).tolist()}
                for name, rows in found.items()
            }
            self._check_classes(members, classes)
            self.groups_, self.rotations_ = found.names, self._rotations(codes, members)
        return self

    def transform(self, X: Any, groups: Any = None) -> Array:
        """Turn the samples of each group.

        Returns
        -------
        ndarray of shape (N, n, n)
            ``Q X Q^H`` for samples of sources, exactly Hermitian; all others as they are.

        Raises
        ------
        ValueError
            Also if no groups are given.
        """
        check_is_fitted(self)
        with single_blas_thread(matrix_size(X)):
            # The samples of the target, and those of groups that fit did not meet, stay as they are.
            named = zip(self.groups_.tolist(), self.rotations_, strict=True)
            turns = [None if name == self.target else turn for name, turn in named]
            return transformed(self, X, groups, turns, lambda *_: None, _turning, like=[self.rotations_])

    def _check_parameters(self) -> None:
        require_prior_weight(self.prior_weight)
        if isinstance(self.tol, (bool, str)) or not 0 < self.tol < np.inf:
            raise ValueError(f"tol must be a finite number above 0, got {self.tol!r}")
        require_max_iter(self.max_iter)

    def _check_classes(self, members: Members, classes: Array) -> None:
        """Raise ValueError unless the target and a source are there, and each source has a class of the target."""
        if self.target not in members:
            raise ValueError(
                f"target {self.target!r} is not among the groups {list(members)} of fit, which needs some of its "
                "samples with labels"
            )
        if len(members) == 1:
            raise ValueError(f"target {self.target!r} is the only group in fit: Rotate turns other groups to it")
        wanted = members[self.target]
        for name, own in members.items():
            if not wanted.keys() & own.keys():
                raise ValueError(
                    f"group {name!r} has the classes {classes[list(own)].tolist()}, and the target {self.target!r} has "
                    f"{classes[list(wanted)].tolist()}: they need one in common"
                )

    def _rotations(self, codes: Array, members: Members) -> Array:
        """Return Q (G, n, n) of the groups, given the rows of each class of each group."""
        wanted = members[self.target]
        goal = {c: _mean(codes, rows) for c, rows in wanted.items()}
        result = []
        for name, own in members.items():
            if own is wanted:
                result.append(np.eye(codes.shape[-1]))
                continue
            common = [c for c in wanted if c in own]
            size = np.mean([len(wanted[c]) for c in common])
            means = np.stack([_mean(codes, own[c]) for c in common])
            found, converged = nearest_rotation(
                np.stack([goal[c] for c in common]),
                means,
                self.prior_weight / float(size),
                tol=self.tol,
                max_iter=self.max_iter,
            )
            if not converged:
                warnings.warn(
                    f"the rotation of group {name!r} did not converge in {self.max_iter} iterations: raise max_iter, "
                    "tol or prior_weight",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            result.append(found)
        return np.stack(result)


def _mean(codes: Array, rows: Array) -> Array:
    return riemannian_mean(AffineInvariant(), subset(codes, rows), tol=1e-6).code


def _turning(turn: Array | None) -> Callable[[Array], Array]:
    """Return the function that turns samples (..., n, n) by a matrix (n, n), or returns them as they are for None."""
    return lambda codes: codes if turn is None else congruence(codes, adjoint(turn))
