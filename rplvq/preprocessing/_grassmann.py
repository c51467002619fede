"""The cost of projected matrices as a function on the Grassmann manifold: its gradient, and its minimisation."""

from functools import lru_cache

import attrs
import numpy as np

from rplvq.arrays import adjoint, congruence, hermitian_part
from rplvq.costs import evaluate
from rplvq.manifolds import AffineInvariant
from rplvq.protocols import Array, Cost


def lifted(matrices: Array, basis: Array, small: Array) -> Array:
    """Change matrices M (K, n, n) as little as possible such that their projections become W (K, p, p).

    With the basis V (n, p) and ``A = V^H M V``, the result is ``M + M V (A^-1 W A^-1 - A^-1) V^H M``, whose projection
    is W. For a Gaussian of covariance M this replaces the marginal of ``V^H x`` and keeps the conditional of the rest:
    of all positive definite matrices with projection W it has the least Kullback-Leibler divergence from M.
    """
    inverse = np.linalg.inv(congruence(matrices, basis))
    sides = matrices @ basis
    return hermitian_part(matrices + sides @ (inverse @ small @ inverse - inverse) @ adjoint(sides))


@attrs.frozen(eq=False)
class ProjectedCost:
    """The mean cost of projected samples X (N, n, n) and prototypes M (K, n, n), as a function of the subspace.

    ``f(V) = mean_b cost(d^2(V^H X_b V, V^H M_k V))``, where d is invariant under congruences, so that f depends on the
    span of V only. With ``A u_i = lam_i W u_i`` and ``u_i^H W u_i = 1`` for ``A = V^H X V`` and ``W = V^H M V``,

    ``d d^2 / d A = sum_i (2 log lam_i / lam_i) u_i u_i^H`` and ``d d^2 / d W = -sum_i 2 log lam_i u_i u_i^H``

    (derivatives of generalised eigenvalues), and a function g of A has the gradient ``2 X V (d g / d A)`` by V.
    """

    samples: Array
    prototypes: Array
    targets: Array
    labels: Array
    cost: Cost
    sigma2: float

    def __call__(self, basis: Array) -> tuple[float, Array]:
        """Return the value at a basis (n, p), and the Euclidean gradient (n, p) there."""
        manifold = AffineInvariant()
        small = congruence(self.prototypes, basis)
        sqdist, logs, vectors, factors = manifold.connect(small, congruence(self.samples, basis))
        loss, slope = evaluate(self.cost, sqdist, self.targets, self.labels, self.sigma2)
        vectors = adjoint(factors) @ vectors  # (N, K, p, p), the u_i in columns
        rates = 2.0 * slope[..., None] * logs / len(loss)  # (N, K, p)
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
    solver = ConjugateGradient(max_iterations=max_iter, min_gradient_norm=tol, max_time=np.inf, verbosity=0)
    solution = solver.run(problem, initial_point=basis.astype(function.samples.dtype))
    # Hundreds of retractions leave rounding errors, which one more orthonormalisation removes.
    return np.linalg.qr(solution.point)[0], float(solution.cost), int(solution.iterations) - 1
