"""Three readings of a learned Log-Euclidean metric, on SynII, digits, ETH-80 and BCI IV 2a.

F. Tang, P. Tino, H. Yu (2023, doi:10.1109/TCYB.2022.3178412) learn the metric on the vector of a logarithm, which is
:class:`rplvq.LearnedLogEuclidean` with m x m numbers, m = n (n + 1) / 2, or on the matrix, with n x n numbers. The
second is :class:`MatrixLogEuclidean`, a metric of one's own that needs nothing but the public interfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import attrs
import numpy as np

from examples.paper.data import load_arrays, load_bci2a
from examples.paper.runner import Job, Record
from examples.paper.synthetic_methods import draw
from rplvq import LearnedLogEuclidean, LogEuclidean, RiemannianLVQ
from rplvq.datasets import load_digits_covariances
from rplvq.protocols import Array

__all__ = ["METRICS", "PROBLEMS", "RATES", "MatrixLogEuclidean", "jobs", "score", "smoke"]

LONGEST = 0.5  # largest relative change of Omega in one step, as under LearnedLogEuclidean
RATES = (0.01, 0.1, 1.0)


class WithMetric:
    """Logarithms (K, n, n) of prototypes, with the Omega (n, n) by which they are measured."""

    def __init__(self, codes: Array, omega: Array) -> None:
        self.codes, self.omega = codes, omega

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.codes, dtype=dtype)

    def with_codes(self, codes: Array) -> WithMetric:
        """Return other prototypes with the same metric."""
        return WithMetric(codes, self.omega)


class Lines(NamedTuple):
    """Squared distances (B, K), prototypes (K, n, n), samples (B, n, n) and Omega (n, n)."""

    sqdist: Array
    prototypes: Array
    samples: Array
    omega: Array


@attrs.frozen
class MatrixLogEuclidean:
    """Real matrices under ``|Omega D|_F^2 = tr(Q D^2)``, ``Q = Omega^T Omega``, or under ``|Omega D Omega^T|_F^2``.

    D is the difference of logarithms; the second form has ``sides=2``. Omega follows its gradient, which is
    ``2 Omega D^2`` and ``4 Omega D Q D``, and is scaled to ``tr Q = n`` after each step.
    """

    rate: float = 0.1
    sides: int = 1

    def encode(self, points: Any) -> Array:
        """Return the logarithms of matrices (N, n, n)."""
        return LogEuclidean().encode(points)

    def decode(self, codes: Any) -> Array:
        """Return the exponentials of codes (K, n, n)."""
        return LogEuclidean().decode(np.asarray(codes))

    def sqdist(self, prototypes: Any, samples: Array) -> Array:
        """Return the squared distances (B, K)."""
        omega = self._omega(prototypes)
        right = omega.T if self.sides == 2 else np.eye(len(omega))
        ends, starts = ((omega @ codes @ right).reshape(len(codes), -1) for codes in (samples, np.asarray(prototypes)))
        squares = np.vecdot(ends, ends)[:, None] + np.vecdot(starts, starts)
        return np.asarray(np.maximum(squares - 2.0 * ends @ starts.T, 0.0))

    def connect(self, prototypes: Any, samples: Array) -> Lines:
        """Connect samples (B, n, n) with prototypes (K, n, n) by the straight lines between their logarithms."""
        return Lines(self.sqdist(prototypes, samples), np.asarray(prototypes), samples, self._omega(prototypes))

    def move(self, lines: Lines, weights: Array) -> WithMetric:
        """Move the logarithms by the weighted differences, and Omega against its gradient."""
        _, prototypes, samples, omega = lines
        moved = prototypes + np.einsum("bk,bij->kij", weights, samples)
        moved -= weights.sum(axis=0)[:, None, None] * prototypes
        rows, columns = np.nonzero(weights)
        pairs, D = weights[rows, columns], samples[rows] - prototypes[columns]
        reach = float(np.abs(pairs) @ np.einsum("bij,bij->b", D, D))
        if reach > 0 and self.rate > 0:
            between = D @ (2.0 * omega.T @ omega) if self.sides == 2 else D
            pull = omega @ np.einsum("b,bij,bjl->il", pairs, between, D)
            omega = omega - min(self.rate, LONGEST / reach) * pull
            omega *= np.sqrt(len(omega) / np.vdot(omega, omega))
        return WithMetric(moved, omega)

    def _omega(self, prototypes: Any) -> Array:
        return prototypes.omega if isinstance(prototypes, WithMetric) else np.eye(np.shape(prototypes)[-1])


METRICS: dict[str, Callable[[float], Any]] = {
    "vector": lambda rate: LearnedLogEuclidean(rate=rate),
    "matrix": lambda rate: MatrixLogEuclidean(rate),
    "matrix, both sides": lambda rate: MatrixLogEuclidean(rate, sides=2),
}
# Prototypes per class and epochs.
PROBLEMS = {"SynII": (2, 30), "digits": (2, 12), "ETH-80": (3, 12), "BCI 2a": (1, 15)}
SUBJECTS = (1, 3, 8)


def parts(problem: str, repetition: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield training and test samples with their labels; BCI 2a has one pair per subject."""
    if problem == "BCI 2a":
        yield from (tuple(load_bci2a(subject)) for subject in SUBJECTS)
        return
    if problem == "SynII":
        data = draw("syn2", repetition, 100)
        yield data.X, data.y, data.X_test, data.y_test
        return
    X, y = load_digits_covariances() if problem == "digits" else load_arrays("eth80_cov5.npz", "full256", "y")
    order = np.random.default_rng(repetition).permutation(len(y))
    train, test = order[:800], order[800:]
    yield X[train], y[train], X[test], y[test]


def score(*, repetition: int, method: str, problem: str, cost: str, rate: float) -> Record:
    """Fit from the class means, with half the median distance as sigma2, and return the test accuracy."""
    count, epochs = PROBLEMS[problem]
    metric = METRICS[method.split(" [")[0]](rate)
    step = "paper" if cost == "glvq" else "auto"
    model = RiemannianLVQ(
        metric, cost=cost, sigma2="half_median", step_size=step, prototypes_per_class=count, max_epochs=epochs,
        batch_size=4, random_state=repetition,
    )  # fmt: skip
    found = [model.fit(X, y).score(X_test, y_test) for X, y, X_test, y_test in parts(problem, repetition)]
    return {"accuracy": float(np.mean(found))}


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs; ``quick`` has one repetition and one rate. BCI 2a has a fixed division, and one seed."""
    repetitions, rates = (1, RATES[1:2]) if quick else (5, RATES)
    return [
        job
        for repetition, problem in product(range(repetitions), PROBLEMS)
        if not (problem == "BCI 2a" and repetition)
        for job in _jobs(problem, repetition, rates)
    ]


def smoke() -> list[Job]:
    """Return jobs of seconds."""
    return _jobs("digits", 0, (1.0,))


def _jobs(problem: str, repetition: int, rates: tuple[float, ...]) -> list[Job]:
    named = [("vector [fixed]", 0.0), *((f"{name} [rate {rate:g}]", rate) for name in METRICS for rate in rates)]
    return [
        Job(f"leml-{problem}-{cost}", name, repetition, {"problem": problem, "cost": cost, "rate": rate}, score)
        for cost in ("glvq", "rslvq")
        for name, rate in named
    ]
