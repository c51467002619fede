"""SPDProjection: a learned map of large positive definite matrices to small ones, X -> V^H X V for orthonormal V."""

from functools import lru_cache
from typing import Any, Literal, Self

import attrs
import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rplvq.arrays import (
    MatrixTransformer,
    adjoint,
    by_block,
    check_labels,
    congruence,
    encoded,
    hard_targets,
    invsqrtm,
    logm,
    matrix_size,
    numbered_names,
    principal_basis,
    single_blas_thread,
    sqrtm,
    stacked,
)
from rplvq.costs import CostName, evaluate
from rplvq.estimators import resolve_cost
from rplvq.io import probe_like
from rplvq.manifolds import AffineInvariant, riemannian_mean
from rplvq.parts import library_estimator, require_count, require_number
from rplvq.protocols import Array, Cost
from rplvq.schedules import half_median


def _answers(model: Any) -> list[Array]:
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
    size are the Riemannian class means.

    Parameters
    ----------
    n_components : int, default=2
        Size p of the projected matrices, at most n.
    cost : str or Cost, default="rslvq"
        The cost that V minimises.
    sigma2 : float or "auto", default="auto"
        Variance of the mixture, in squared distances after projection. "auto" is half their median at the start.
    max_iter : int, default=100
        Maximum number of iterations; 0 keeps the start.
    tol : float, default=1e-4
        The minimisation ends when the gradient is shorter than this.

    Attributes
    ----------
    components_ : ndarray of shape (n, p)
        V.
    prototypes_ : ndarray of shape (C, n, n)
        M_k, in the units of X.
    prototype_labels_, classes_ : ndarray of shape (C,)
        Labels, sorted; 0..C-1 for soft labels.
    costs_ : ndarray of shape (2,)
        Mean cost at the start and at the end.
    sigma2_, n_iter_, n_features_in_ : float, int and int
        Variance of the mixture, number of iterations, and n.

    Notes
    -----
    Everything is deterministic. The start are the p directions in which the class means differ most from the mean G of
    all samples: the leading eigenvectors u of ``sum_c share_c log^2(G^-1/2 M_c G^-1/2)``, as spatial filters
    ``G^-1/2 u``. The minimisation runs in these whitened coordinates, so that neither units nor a linear mixing of the
    channels change the subspace of sources that is found. V itself is the basis of the subspace in which the mean
    ``V^H G V`` is diagonal and descending, and in which the largest entry of each column is positive.

    V is fitted to the labels, so in cross-validation the transformer belongs inside the pipeline.

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
        max_iter: int = 100,
        tol: float = 1e-4,
    ) -> None:
        self.n_components = n_components
        self.cost = cost
        self.sigma2 = sigma2
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any) -> Self:
        """Learn V from matrices X (N, n, n) and labels y (N,) or (N, C) as in :meth:`rplvq.RiemannianLVQ.fit`.

        If ValueError is raised, nothing is changed.
        """
        with single_blas_thread(matrix_size(X)):
            cost, codes, classes, targets = self._check(X, y)
            manifold = AffineInvariant()
            center = riemannian_mean(manifold, codes).code
            whitening = invsqrtm(center)
            samples = congruence(codes, whitening)
            index = hard_targets(targets)
            members = [samples[index == label] for label in range(len(classes))]
            means = np.stack([riemannian_mean(manifold, group).code for group in members])
            start = _leading(means, np.array([len(group) for group in members]), self.n_components)
            sigma2 = self._start_sigma2(means, samples, start)
            function = ProjectedCost(samples, means, targets, cost, sigma2)
            basis, last_cost, n_iter = descend(function, start, self.max_iter, self.tol)
            costs = np.array([function(start)[0], last_cost])
            components = principal_basis(whitening @ basis, center)
            validate_data(self, stacked(X), skip_check_array=True)  # so late, because it changes the estimator
            self.components_ = components
            self.prototypes_ = congruence(means, sqrtm(center))
            self.prototype_labels_ = classes
            self.classes_ = classes
            self.sigma2_ = sigma2
            self.costs_ = costs
            self.n_iter_ = n_iter
        return self

    def transform(self, X: Any) -> Array:
        """Return ``V^H X V`` (N, p, p), exactly Hermitian and in the units of X, which is as for :meth:`fit`.

        Raise NotFittedError before fit, and ValueError if a matrix is not positive definite or of another size.
        """
        with single_blas_thread(matrix_size(X)):
            check_is_fitted(self)
            codes = encoded(AffineInvariant(), X)
            validate_data(self, stacked(X), skip_check_array=True, reset=False)
            return by_block(lambda part: congruence(part, self.components_), codes)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return ``spdprojection0`` and so on (p,); each depends on all channels, so ``input_features`` is ignored."""
        check_is_fitted(self)
        return numbered_names(self, self.components_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _check(self, X: Any, y: Any) -> tuple[Cost, Array, Array, Array]:
        """Check everything before anything is changed; return cost, codes, classes and targets."""
        for name, minimum in (("n_components", 1), ("max_iter", 0)):
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


def _leading(means: Array, counts: Array, n_components: int) -> Array:
    """Return the directions (n, p) in which whitened class means (C, n, n) differ most from the identity."""
    logarithms = logm(means)
    scatter = np.tensordot(counts / counts.sum(), logarithms @ logarithms, 1)
    return np.asarray(np.linalg.eigh(scatter)[1][:, ::-1][:, :n_components])


@attrs.frozen(eq=False)
class ProjectedCost:
    """The mean cost of projected samples X (N, n, n) and one prototype M per class (C, n, n), by the subspace.

    ``f(V) = mean_b cost(d^2(V^H X_b V, V^H M_k V))``, where d is invariant under congruences, so that f depends on the
    span of V only. With ``A u_i = lam_i W u_i`` and ``u_i^H W u_i = 1`` for ``A = V^H X V`` and ``W = V^H M V``,

    ``d d^2 / d A = sum_i (2 log lam_i / lam_i) u_i u_i^H`` and ``d d^2 / d W = -sum_i 2 log lam_i u_i u_i^H``

    (derivatives of generalised eigenvalues), and a function g of A has the gradient ``2 X V (d g / d A)`` by V.
    """

    samples: Array
    prototypes: Array
    targets: Array
    cost: Cost
    sigma2: float

    def __call__(self, basis: Array) -> tuple[float, Array]:
        """Return the value at a basis (n, p), and the Euclidean gradient (n, p) there."""
        manifold = AffineInvariant()
        small = congruence(self.prototypes, basis)
        sqdist, logs, vectors, factors = manifold.connect(small, congruence(self.samples, basis))
        loss, slope = evaluate(self.cost, sqdist, self.targets, np.arange(len(self.prototypes)), self.sigma2)
        vectors = adjoint(factors) @ vectors  # (N, C, p, p), the u_i in columns
        rates = 2.0 * slope[..., None] * logs / len(loss)  # (N, C, p)
        by_samples = ((vectors * (rates * np.exp(-logs))[..., None, :]) @ adjoint(vectors)).sum(axis=1)
        by_prototypes = -((vectors * rates[..., None, :]) @ adjoint(vectors)).sum(axis=0)
        gradient = (self.samples @ basis @ by_samples).sum(axis=0)
        gradient += (self.prototypes @ basis @ by_prototypes).sum(axis=0)
        return float(loss.mean()), 2.0 * gradient


def descend(function: ProjectedCost, basis: Array, max_iter: int, tol: float) -> tuple[Array, float, int]:
    """Minimise over subspaces by conjugate gradients from a basis (n, p); return the last, its cost, and iterations."""
    n, p = basis.shape
    if n == p or max_iter == 0:
        return basis, function(basis)[0], 0
    # Imported here, because most users of this library never need it.
    from pymanopt import Problem
    from pymanopt.function import numpy as numpy_function
    from pymanopt.manifolds import ComplexGrassmann, Grassmann
    from pymanopt.optimizers import ConjugateGradient

    manifold = (ComplexGrassmann if np.iscomplexobj(function.samples) else Grassmann)(n, p)
    of_manifold = numpy_function(manifold)

    @lru_cache(maxsize=1)  # the optimiser asks for the cost and the gradient of a point one after the other
    def evaluated(content: bytes) -> tuple[float, Array]:
        return function(np.frombuffer(content, dtype=function.samples.dtype).reshape(n, p))

    problem = Problem(
        manifold,
        of_manifold(lambda point: evaluated(point.tobytes())[0]),
        euclidean_gradient=of_manifold(lambda point: evaluated(point.tobytes())[1]),
    )
    # A limit of time would make the result depend on the machine.
    solver = ConjugateGradient(max_iterations=max_iter, min_gradient_norm=tol, max_time=np.inf, verbosity=0)
    minimum = solver.run(problem, initial_point=basis.astype(function.samples.dtype))
    # Hundreds of retractions leave rounding errors, which one more orthonormalisation removes. The iteration in which
    # the optimiser stops is not one.
    return np.linalg.qr(minimum.point)[0], float(minimum.cost), int(minimum.iterations) - 1
