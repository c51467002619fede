"""SPDProjection: a learned map of large positive definite matrices to small ones, X -> V^H X V for orthonormal V."""

from typing import Literal, Self

import attrs
import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from rplvq.arrays import (
    MatrixTransformer,
    by_block,
    check_labels,
    congruence,
    encoded,
    hard_targets,
    index_labels,
    invsqrtm,
    logm,
    matrix_size,
    numbered_names,
    principal_basis,
    single_blas_thread,
    sqrtm,
    stacked,
)
from rplvq.costs import CostName
from rplvq.estimators import RiemannianLVQ, resolve_cost
from rplvq.exceptions import interrupts_raised
from rplvq.io import probe_like
from rplvq.manifolds import AffineInvariant, riemannian_mean
from rplvq.parts import library_estimator, require_count, require_number
from rplvq.preprocessing._grassmann import ProjectedCost, descend, lifted
from rplvq.protocols import Array, ArrayLike, Cost
from rplvq.schedules import half_median


def _answers(model: BaseEstimator) -> list[Array]:
    """Return a matrix and the prototypes as they are projected."""
    probe = probe_like(model.prototypes_)
    return [probe, congruence(np.concatenate([probe, model.prototypes_]), model.components_)]


@library_estimator(answers=_answers)
class SPDProjection(MatrixTransformer):
    """Transformer ``X -> V^H X V`` with orthonormal V (n, p), which minimises the cost of prototypes on labelled data.

    If X is the covariance of n channels x, then ``V^H X V`` is that of the p channels ``V^H x``. V minimises the mean
    cost of the affine-invariant distances ``d^2(V^H X_b V, V^H M_k V)``, by conjugate gradients on the Grassmann
    manifold of subspaces (Absil, Mahony and Sepulchre 2004, doi:10.1023/B:ACAP.0000013855.14971.91; for positive
    definite matrices Harandi, Salzmann and Hartley 2018, doi:10.1109/TPAMI.2017.2655048). The prototypes M_k of full
    size are the Riemannian class means, or with ``n_alternations`` they are learned together with V.

    Parameters
    ----------
    n_components : int, default=2
        Size p of the projected matrices, at most n.
    cost : str or Cost, default="rslvq"
        The cost that V minimises.
    sigma2 : float or "auto", default="auto"
        Variance of the mixture, in squared distances after projection. "auto" is half their median at the start.
    n_alternations : int, default=0
        How often prototypes for V, and then V for these, are learned after V for the class means.
    classifier : RiemannianLVQ, optional
        A clone of it learns prototypes from projected matrices, each time from its last ones. By default it has this
        cost and sigma2, five epochs and seed 0.
    max_iter : int, default=100
        Maximum number of iterations of each minimisation over V; 0 keeps the start.
    tol : float, default=1e-4
        A minimisation ends when the gradient is shorter than this.

    Attributes
    ----------
    components_ : ndarray of shape (n, p)
        V.
    prototypes_, prototype_labels_ : ndarray of shape (K, n, n) and (K,)
        M_k, in the units of X, and their labels.
    classes_ : ndarray of shape (C,)
        Labels, sorted; 0..C-1 for soft labels.
    costs_ : ndarray of shape (2 + n_alternations,)
        Mean cost at the start and after each minimisation.
    sigma2_, n_iter_, n_features_in_ : float, int and int
        Variance of the mixture, total number of iterations, and n.

    Notes
    -----
    Everything is deterministic. The start are the p directions in which the class means differ most from the mean G of
    all samples: the leading eigenvectors u of ``sum_c share_c log^2(G^-1/2 M_c G^-1/2)``, as spatial filters
    ``G^-1/2 u``. The minimisation runs in these whitened coordinates, so that neither units nor a linear mixing of the
    channels change the subspace of sources that is found. V itself is the basis of the subspace in which the mean
    ``V^H G V`` is diagonal and descending, and in which the largest entry of each column is positive.

    Prototypes W_k learned at size p x p become those of full size by the smallest change of M_k, in Kullback-Leibler
    divergence, whose projection is W_k. V is fitted to the labels: cross-validate the whole pipeline.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import RiemannianLVQ, SPDProjection
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=15, random_state=0)
    >>> pipeline = make_pipeline(SPDProjection(n_components=5), RiemannianLVQ(max_epochs=5, random_state=0))
    >>> bool(pipeline.fit(X, y).score(X, y) > 0.9), pipeline[0].transform(X).shape
    (True, (60, 5, 5))
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        cost: CostName | Cost = "rslvq",
        sigma2: float | Literal["auto"] = "auto",
        n_alternations: int = 0,
        classifier: RiemannianLVQ | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> None:
        self.n_components = n_components
        self.cost = cost
        self.sigma2 = sigma2
        self.n_alternations = n_alternations
        self.classifier = classifier
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: ArrayLike, y: ArrayLike, **params: object) -> Self:
        """Learn V from matrices X (N, n, n) and labels y as in :meth:`rplvq.RiemannianLVQ.fit`, and return self.

        ``params`` are metadata that ``classifier`` requests for its fit in scikit-learn's metadata routing; V itself
        minimises the mean cost of all samples alike. If ValueError is raised, nothing is changed.
        """
        with single_blas_thread(matrix_size(X)):
            routed = process_routing(self, "fit", **params).classifier.fit
            cost, codes, classes, targets = self._check(X, y)
            manifold = AffineInvariant()
            center = riemannian_mean(manifold, codes).code
            whitening = invsqrtm(center)
            coloring = sqrtm(center)
            samples = congruence(codes, whitening)
            index = hard_targets(targets)
            members = [samples[index == label] for label in range(len(classes))]
            means = np.stack([riemannian_mean(manifold, group).code for group in members])
            basis = _leading(means, np.array([len(group) for group in members]), self.n_components)
            sigma2 = self._start_sigma2(means, samples, basis)
            target = ProjectedCost(samples, means, targets, np.arange(len(classes)), cost, sigma2)
            basis, target, costs, n_iter = self._learn(target, basis, classes, y, routed)
            components = principal_basis(whitening @ basis, center)
            prototypes = congruence(target.prototypes, coloring)
            validate_data(self, stacked(X), skip_check_array=True)  # so late, because it changes the estimator
            self.components_ = components
            self.prototypes_ = prototypes
            self.prototype_labels_ = classes[target.labels]
            self.classes_ = classes
            self.sigma2_ = sigma2
            self.costs_ = np.array(costs)
            self.n_iter_ = n_iter
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return ``V^H X V`` (N, p, p), exactly Hermitian and in the units of X, which is as for :meth:`fit`.

        Raise NotFittedError before fit, and ValueError if a matrix is not positive definite or of another size.
        """
        with single_blas_thread(matrix_size(X)):
            check_is_fitted(self)
            codes = encoded(AffineInvariant(), X)
            validate_data(self, stacked(X), skip_check_array=True, reset=False)
            return by_block(lambda part: congruence(part, self.components_), codes)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the router of scikit-learn's metadata routing: fit calls fit of ``classifier``."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        model = self.classifier or RiemannianLVQ()
        return MetadataRouter(owner=type(self).__name__).add(classifier=model, method_mapping=mapping)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Array:
        """Return ``spdprojection0`` and so on (p,); each depends on all channels, so ``input_features`` is ignored."""
        check_is_fitted(self)
        return numbered_names(self, self.components_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check(self, X: ArrayLike, y: ArrayLike) -> tuple[Cost, Array, Array, Array]:
        """Check everything before anything is changed; return cost, codes, classes and targets."""
        for name, minimum in (("n_components", 1), ("n_alternations", 0), ("max_iter", 0)):
            require_count(name, getattr(self, name), minimum)
        require_number("tol", self.tol, closed=True, finite=True)
        cost = resolve_cost(self.cost)
        codes = encoded(AffineInvariant(), X)
        if self.n_components > codes.shape[1]:
            raise ValueError(f"n_components={self.n_components} exceeds the size {codes.shape[1]} of the matrices in X")
        classes, targets = check_labels(y, len(codes))
        counts = np.bincount(hard_targets(targets), minlength=len(classes))
        if not counts.all():
            name = classes[np.argmin(counts)]
            raise ValueError(f"y has no sample whose most probable class is {name}: drop that column")
        return cost, codes, classes, targets

    def _start_sigma2(self, means: Array, samples: Array, basis: Array) -> float:
        if isinstance(self.sigma2, str) and self.sigma2 == "auto":
            return half_median(AffineInvariant().sqdist(congruence(means, basis), congruence(samples, basis)))
        require_number("sigma2", self.sigma2, finite=True, words=" or 'auto'")
        return float(self.sigma2)

    def _learn(
        self, target: ProjectedCost, basis: Array, classes: Array, y: ArrayLike, routed: Bunch
    ) -> tuple[Array, ProjectedCost, list[float], int]:
        """Minimise, then alternate; return basis (n, p), cost function with its prototypes, costs, and iterations."""
        costs = [target(basis)[0]]
        basis, cost, n_iter = descend(target, basis, self.max_iter, self.tol)
        costs.append(cost)
        model = RiemannianLVQ(cost=self.cost, sigma2=target.sigma2, max_epochs=5, random_state=0)
        model = clone(model if self.classifier is None else self.classifier)
        for turn in range(self.n_alternations):
            with interrupts_raised():
                model.fit(congruence(target.samples, basis), y, **routed)
            labels = index_labels(model.prototype_labels_, classes, "classifier.prototype_labels_")
            before = target.prototypes if turn else target.prototypes[labels]  # class means at first
            target = attrs.evolve(target, prototypes=lifted(before, basis, model.prototypes_), labels=labels)
            basis, cost, count = descend(target, basis, self.max_iter, self.tol)
            costs.append(cost)
            n_iter += count
            model.set_params(init=(congruence(target.prototypes, basis), model.prototype_labels_))
        return basis, target, costs, n_iter


def _leading(means: Array, counts: Array, n_components: int) -> Array:
    """Return the directions (n, p) in which whitened class means (C, n, n) differ most from the identity."""
    logarithms = logm(means)
    scatter = np.tensordot(counts / counts.sum(), logarithms @ logarithms, 1)
    return np.asarray(np.linalg.eigh(scatter)[1][:, ::-1][:, :n_components])
