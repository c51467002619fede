"""Runs pymanopt's solvers on the mean loss of all samples, with the costs and geometries of the stochastic trainer."""

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pymanopt import Problem
from pymanopt.function import numpy as numpy_function
from pymanopt.optimizers import ConjugateGradient, TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher
from tqdm.auto import tqdm

from rplvq.arrays import Samples, matrix_size, single_blas_thread
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.training._state import Meter, Result, State, columns, history_row
from rplvq.training.solvers._objective import Objective
from rplvq.training.solvers._stack import TANGENTS, PrototypeStack

SolverName = Literal["cg", "trust_regions"]
"""The names of :data:`SOLVERS` as a type, so that editors complete them."""
SOLVERS = ("cg", "trust_regions")
"""Names of solvers: pymanopt's conjugate gradients and trust regions."""

SMALL_GRADIENT = 1e-6
"""The gradient counts as zero if its norm is below this share of its first norm."""
MOST_INNER = 30
"""Largest number of products with the Hessian in one step of the trust regions."""


class Recorder:
    """Gives a solver its gradients, for which it asks only at points it has accepted; each new one adds a row."""

    def __init__(self, objective: Objective, space: PrototypeStack, state: State, advance: Callable[[], Any]) -> None:
        self.objective, self.space, self.state, self.advance = objective, space, state, advance
        self.rows: list[dict[str, float]] = []
        self.point: Prototypes = None
        self.tangent: Array = np.zeros(0)
        self.began = time.perf_counter()

    def gradient(self, point: Prototypes) -> Array:
        """Return the gradient at a point (K, ...), and record the point."""
        if point is self.point:  # no step lowered the cost
            return self.tangent
        self.tangent, seen = self.objective.gradient(point), self.objective.evaluate(point)
        meter = Meter(self.objective.labels)
        meter.add(seen.sqdist, seen.loss, self.objective.samples)
        moved = 0.0 if self.point is None else self.space.dist(self.point, point)
        now, at = time.perf_counter(), self.state._replace(epoch=len(self.rows), step_size=moved)
        row = history_row(at, meter.score(), 0, now - self.began)
        self.rows.append(row | {"gradient_norm": self.space.norm(point, self.tangent)})
        if self.point is not None:
            self.advance()
        self.point, self.began = point, now
        return self.tangent

    def hessian(self, point: Prototypes, tangent: Array) -> Array:
        """Return the product of the Hessian at the last point with a tangent (K, ...)."""
        return self.objective.hessian(self.space, point, self.tangent, tangent)


def minimize(
    name: SolverName,
    manifold: Manifold[Any],
    cost: Cost,
    state: State,
    samples: Samples,
    *,
    max_iterations: int = 100,
    verbose: int = 0,
) -> Result:
    """Move the prototypes of ``state`` to a nearby minimum of the cost of all samples.

    Parameters
    ----------
    name : {"cg", "trust_regions"}
        Conjugate gradients with the rule of Hestenes and Stiefel, or trust regions with a Hessian by finite differences
        (Townsend, Koep and Weichwald 2016, "Pymanopt", JMLR 17).
    manifold : Manifold
        The geometry: affine-invariant, Log-Euclidean, log-Cholesky, projected Euclidean, vectors, or a pymanopt one.
    cost : Cost
        The loss.
    state : State
        From :meth:`rplvq.Trainer.init`. The value of sigma2 is that of the last epoch of its schedule.
    samples : Samples
        N samples; a sample weight multiplies the loss of its sample.
    max_iterations : int, default=100
        Largest number of steps. The solver stops earlier if the norm of the gradient has fallen to a millionth of its
        first value, or if no step lowers the cost.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Result
        The state after the last step, with epoch ``max_iterations``, and the history. The history has a row for the
        start and one per accepted step, with the columns of :meth:`rplvq.Trainer.run` and gradient_norm (of the mean
        loss); cost is the sum over the samples, and step_size the distance that all prototypes moved together. It is
        empty if there was nothing to do.

    Raises
    ------
    ValueError
        If the solver or the geometry is not known.

    Notes
    -----
    Under :class:`rplvq.ProjectedEuclidean` steps end at the floor ``tau`` of the eigenvalues. There a solver can stop
    before the gradient vanishes.

    Examples
    --------
    >>> from rplvq import AffineInvariant, RiemannianLVQ, Trainer
    >>> from rplvq.arrays import Samples
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.training.solvers import minimize
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> trainer, samples = Trainer(AffineInvariant(), sigma2=4.0), Samples(X, y)
    >>> start = trainer.init(samples, 4, np.random.default_rng(0))
    >>> state, history = minimize("cg", trainer.manifold, trainer.cost, start, samples, max_iterations=10)
    >>> bool((np.diff(history["cost"]) < 0).all())
    True

    The classifier with these prototypes:

    >>> prototypes = trainer.manifold.decode(state.prototypes)
    >>> model = RiemannianLVQ(init=(prototypes, state.labels), sigma2=4.0, max_epochs=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """
    if name not in SOLVERS:
        raise ValueError(f"name={name!r} is not known; choose from {list(SOLVERS)}")
    if type(manifold) not in TANGENTS:
        known = sorted(cls.__name__ for cls in TANGENTS)
        raise ValueError(f"solvers do not know the tangents of manifold={manifold!r}: they know {known}")
    with single_blas_thread(matrix_size(samples.codes)):
        state = state.at_epoch(max_iterations, max_iterations)
        objective = Objective(manifold, cost, samples, state.labels, state.sigma2)
        nearest = objective.evaluate(state.prototypes).sqdist.min(axis=1)
        scale = float(np.sqrt(np.average(nearest, weights=samples.weights)))
        space = PrototypeStack(manifold, state.prototypes, scale, float(getattr(manifold, "max_step_length", np.inf)))
        with tqdm(total=max_iterations, disable=not verbose, unit="step", leave=False) as bar:
            recorder = Recorder(objective, space, state, bar.update)
            if max_iterations == 0 or space.typical_dist == 0:
                return Result(state, {})
            decorate = numpy_function(space)
            problem = Problem(
                space,
                decorate(lambda point: objective.value(point)),
                riemannian_gradient=decorate(lambda point: recorder.gradient(point)),
                riemannian_hessian=decorate(lambda point, tangent: recorder.hessian(point, tangent)),
            )
            first = space.norm(state.prototypes, objective.gradient(state.prototypes))
            if first == 0:
                return Result(state, {})
            point = _run(name, problem, state.prototypes, max_iterations, SMALL_GRADIENT * first)
        return Result(state._replace(prototypes=point), columns(recorder.rows))


def _run(name: str, problem: Problem, start: Prototypes, max_iterations: int, small: float) -> Prototypes:
    """Run a solver without output, and return the last prototypes that it accepted."""
    scale, inf = problem.manifold.typical_dist, np.inf
    limits = {"max_time": inf, "max_cost_evaluations": inf, "min_gradient_norm": small, "verbosity": 0}
    if name == "trust_regions":
        solver = TrustRegions(max_iterations=max_iterations, **limits)
        most = min(problem.manifold.dim, MOST_INNER)
        return solver.run(problem, initial_point=start, maxinner=most, Delta_bar=4 * scale, Delta0=scale / 8).point
    limits["min_step_size"] = np.finfo(float).tiny
    searcher = AdaptiveLineSearcher(initial_step_size=scale, max_iterations=30)
    # pymanopt counts the evaluation of the start as an iteration.
    solver = ConjugateGradient(max_iterations=max_iterations + 1, line_searcher=searcher, **limits)
    return solver.run(problem, initial_point=start).point
