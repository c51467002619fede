"""Deterministic training: the cost of all samples, minimised by pymanopt's solvers over the product of the prototypes.

Costs and geometries are those of the stochastic trainer; :class:`rplvq.objective.Objective` makes one function of both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pymanopt import Problem
from pymanopt.function import numpy as numpy_function
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from pymanopt.optimizers.line_search import AdaptiveLineSearcher
from tqdm.auto import tqdm

from rplvq.heldout import HeldOut, named_sigma2
from rplvq.history import Meter, columns, line
from rplvq.learned import Learned
from rplvq.objective import Objective
from rplvq.protocols import Array, Cost, Manifold, Prototypes
from rplvq.stack import PrototypeStack, can_transport, stackable
from rplvq.steps import Result, State

__all__ = ["SGD_ONLY", "SOLVERS", "check_solver", "minimise"]

SOLVERS = ("sgd", "cg", "trust_regions", "steepest_descent")
"""Names of solvers: the stochastic trainer, and pymanopt's."""

SMALL_GRADIENT = 1e-6
"""Share of its first norm below which the gradient counts as zero."""
MOST_INNER = 30
"""Products with the Hessian in one step of the trust regions."""


class Recorder:
    """A line of the history for each point at which a solver asks for the gradient: those that it accepted."""

    def __init__(self, objective: Objective, space: PrototypeStack, state: State, advance: Callable[[], Any]) -> None:
        self.objective, self.space, self.state, self.advance = objective, space, state, advance
        self.rows: list[dict[str, float]] = []
        self.point: Prototypes = None
        self.tangent: Array = np.zeros(0)
        self.began = time.perf_counter()

    def gradient(self, point: Prototypes) -> Array:
        """Gradient at a point, kept with the line of the history."""
        objective = self.objective
        if point is self.point:  # no step lowered the cost
            return self.tangent
        self.tangent = objective.gradient(point)
        seen = objective.look(point)
        meter = Meter(objective.labels)
        meter.add(seen.sqdist, seen.loss, objective.targets, objective.weight)
        moved = 0.0 if self.point is None else self.space.dist(self.point, point)
        now = time.perf_counter()
        at = self.state._replace(epoch=len(self.rows), step_size=moved)
        row = line(at, meter.score(), 0, now - self.began)
        self.rows.append(row | {"gradient_norm": self.space.norm(point, self.tangent)})
        if self.point is not None:
            self.advance()
        self.point, self.began = point, now
        return self.tangent

    def hessian(self, point: Prototypes, tangent: Array) -> Array:
        """Hessian at the last point along a tangent."""
        return self.objective.hessian(self.space, point, self.tangent, tangent)


SGD_ONLY = {"step_size": None, "batch_size": 1, "max_weight": 1.0, "early_stopping": False, "average": False}
"""Parameters that only the stochastic trainer reads, with the values at which they say nothing."""


def check_solver(estimator: Any, manifold: Any) -> bool:
    """Look whether an estimator's solver is known and goes with its other parameters.

    Parameters
    ----------
    estimator : RiemannianLVQ
        With its parameters.
    manifold : Manifold
        Its geometry.

    Returns
    -------
    bool
        Whether it is one of pymanopt's.

    Raises
    ------
    ValueError
        Names the argument.
    """
    name = estimator.solver
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(f"solver={name!r} is not known; choose from {sorted(SOLVERS)}")
    if name == "sgd":
        return False
    given = {key: getattr(estimator, key) for key in SGD_ONLY}
    extra: dict[str, tuple[Any, Any]] = {"compiled": (estimator.compiled is True, False)}
    extra |= {key: (tuple(getattr(estimator, key) or ()), ()) for key in ("callbacks", "growth")}
    for key, (value, silent) in ({key: (given[key], SGD_ONLY[key]) for key in given} | extra).items():
        if value is not silent and value != silent:
            raise ValueError(f"{key}={getattr(estimator, key)!r} is for solver='sgd' only: leave it out with {name!r}")
    if isinstance(named_sigma2(estimator.sigma2, auto="blended"), (HeldOut, Learned)):
        raise ValueError(f"sigma2={estimator.sigma2!r} is for solver='sgd' only: give sigma2 a number with {name!r}")
    if not stackable(manifold):
        raise ValueError(f"solver={name!r} does not know the tangents of {manifold!r}: use solver='sgd'")
    if name != "steepest_descent" and not can_transport(manifold):
        raise ValueError(
            f"solver={name!r} carries tangents from point to point, which is not known for {manifold!r}: "
            "use solver='steepest_descent' or 'sgd'"
        )
    return True


def minimise(
    name: str,
    manifold: Manifold[Any],
    cost: Cost,
    state: State,
    codes: Array,
    targets: Array,
    sample_weight: Array | None = None,
    *,
    max_iterations: int = 100,
    max_length: float = np.inf,
    verbose: int = 0,
) -> Result:
    """Move the prototypes of ``state`` to where the cost of all samples is least nearby.

    Parameters
    ----------
    name : {"cg", "trust_regions", "steepest_descent"}
        Conjugate gradients (Hestenes and Stiefel's rule), trust regions with Hessian by differences, or steepest
        descent, of pymanopt (Townsend, Koep and Weichwald 2016, "Pymanopt", JMLR 17).
    manifold : Manifold
        The geometry.
    cost : Cost
        The loss.
    state : State
        From :meth:`rplvq.Trainer.init`; its sigma2 is that of the schedule's last epoch.
    codes : ndarray of shape (N, ...)
        Encoded samples.
    targets : ndarray of shape (N,) or (N, C)
        Their class indices or probabilities.
    sample_weight : ndarray of shape (N,), optional
        Factors of the losses.
    max_iterations : int, default=100
        Steps at most; they end earlier where the gradient has fallen to a millionth of its first norm, or no step
        lowers the cost.
    max_length : float, default=inf
        Longest step of a prototype.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    Result
        State after the last step, whose epoch is ``max_iterations``; and the history, empty where there is nothing to
        do, else a line for each accepted step and one before the first: epoch, cost (sum over samples),
        training_error, sigma2, step_size (the distance that the prototypes moved together), n_capped (0), seconds,
        gradient_norm (of the mean loss).

    Notes
    -----
    Under :class:`rplvq.ProjectedEuclidean` steps end at its floor, where a solver can come to rest before the
    gradient vanishes.

    Examples
    --------
    >>> from rplvq import AffineInvariant, RSLVQ, Trainer
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> trainer = Trainer(AffineInvariant(), sigma2=4.0)
    >>> state = trainer.init(trainer.manifold.encode(X), y, 4, np.random.default_rng(0))
    >>> state, history = minimise("cg", trainer.manifold, RSLVQ(), state, X, y, max_iterations=10)
    >>> bool((np.diff(history["cost"]) < 0).all())
    True
    """
    state = state.at_epoch(max_iterations, max_iterations)
    objective = Objective(manifold, cost, codes, targets, state.labels, state.sigma2, sample_weight)
    nearest = objective.look(state.prototypes).sqdist.min(axis=1)
    scale = float(np.sqrt(np.average(nearest, weights=sample_weight)))
    space = PrototypeStack(manifold, state.prototypes, scale, max_length)
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
    """Run a solver, silently, and return the last prototypes that it accepted."""
    scale, inf = problem.manifold.typical_dist, np.inf
    limits = {"max_time": inf, "max_cost_evaluations": inf, "min_gradient_norm": small, "verbosity": 0}
    if name == "trust_regions":
        solver = TrustRegions(max_iterations=max_iterations, **limits)
        most = min(problem.manifold.dim, MOST_INNER)
        return solver.run(problem, initial_point=start, maxinner=most, Delta_bar=4 * scale, Delta0=scale / 8).point
    limits["min_step_size"] = np.finfo(float).tiny
    kinds = {"cg": ConjugateGradient, "steepest_descent": SteepestDescent}
    searcher = AdaptiveLineSearcher(initial_step_size=scale, max_iterations=30)
    # pymanopt counts the look at the starting point as an iteration.
    solver = kinds[name](max_iterations=max_iterations + 1, line_searcher=searcher, **limits)
    return solver.run(problem, initial_point=start).point
