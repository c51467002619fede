"""Annotators who disagree: PLVQ, which learns from shares of votes, against RSLVQ, which learns from the majority.

Each matrix X has known class probabilities p(c | X). Annotators vote with these probabilities, so they disagree in the
regions between classes. In some scenes a share of the votes is random for all matrices, which is noise and not doubt.
Models are compared with the known probabilities on other matrices. In the problem "gaussians" p(c | X) is the posterior
of the mixture, whose centres are also known. On the digits and ETH-80 p(c | X) is the prediction of a logistic
regression that was fitted to the logarithms of all matrices and their true labels.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax, xlogy
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from examples.beyond.problems import FILES, RULE
from examples.paper.data import is_available, load_arrays
from examples.paper.kernels import log_vectors
from examples.paper.runner import Job, Record
from rplvq import AffineInvariant, RiemannianLVQ
from rplvq.arrays import congruence, expm, sqrtm
from rplvq.datasets import load_digits_covariances
from rplvq.protocols import Array

__all__ = ["METHODS", "SCENES", "jobs", "smoke", "train", "vote"]

METHODS = (
    "start, majority",
    "RSLVQ, majority",
    "RSLVQ, each vote a sample",
    "PLVQ, shares of votes",
    "PLVQ, known probabilities",
)
SCENES: dict[str, Record] = {
    "overlap-1": {"data": "gaussians", "separation": 2.0, "n_votes": 1},
    "overlap-5": {"data": "gaussians", "separation": 2.0, "n_votes": 5},
    "overlap-20": {"data": "gaussians", "separation": 2.0, "n_votes": 20},
    "overlap-5-random": {"data": "gaussians", "separation": 2.0, "n_votes": 5, "random_share": 0.3},
    "apart-5": {"data": "gaussians", "separation": 5.0, "n_votes": 5},
    "apart-5-random": {"data": "gaussians", "separation": 5.0, "n_votes": 5, "random_share": 0.3},
    "digits-5": {"data": "digits", "n_train": 400, "n_votes": 5},
    "digits-5-random": {"data": "digits", "n_train": 400, "n_votes": 5, "random_share": 0.3},
    "full256-5": {"data": "full256", "n_train": 400, "n_votes": 5},
    "full256-5-random": {"data": "full256", "n_train": 400, "n_votes": 5, "random_share": 0.3},
}
"""Separation is the mean distance of two centres in standard deviations; random_share is the share of random votes."""
VARIANCE = 0.5
SIZE, N_CLASSES, N_TEST = 4, 3, 1000


class Doubtful(NamedTuple):
    """Matrices (N, n, n) with known class probabilities (N, C) and true labels (N,); the centres if they are known."""

    X: Array
    known: Array
    y: Array
    centres: Array | None


def gaussians(n_samples: int, separation: float, rng: np.random.Generator) -> Doubtful:
    """Draw 4 x 4 matrices that are normal in the tangent spaces of three centres, and labels from the posterior."""
    directions = _symmetric(N_CLASSES, rng)
    directions /= np.linalg.norm(directions, axis=(1, 2), keepdims=True)
    directions -= directions.mean(axis=0)
    wanted, scale, manifold = separation * np.sqrt(VARIANCE), 1.0, AffineInvariant()
    for _ in range(8):  # distances are nearly proportional to the scale
        found = np.sqrt(manifold.sqdist(expm(scale * directions), expm(scale * directions)))
        scale *= wanted / found[np.triu_indices(N_CLASSES, 1)].mean()
    centres = expm(scale * directions)
    member = rng.integers(N_CLASSES, size=n_samples)
    roots, noise = sqrtm(centres)[member], expm(np.sqrt(VARIANCE) * _symmetric(n_samples, rng))
    X = np.concatenate([congruence(noise[i : i + 1], roots[i]) for i in range(n_samples)])
    known = softmax(-manifold.sqdist(centres, X) / (2 * VARIANCE), axis=1)
    return Doubtful(X, known, _drawn(known, rng), centres)


def _symmetric(count: int, rng: np.random.Generator) -> Array:
    """Draw symmetric matrices (count, n, n) with normal entries."""
    entries = rng.standard_normal((count, SIZE, SIZE))
    return (entries + entries.swapaxes(1, 2)) / 2


def _drawn(known: Array, rng: np.random.Generator) -> Array:
    return np.asarray((known.cumsum(axis=1) < rng.uniform(size=(len(known), 1))).sum(axis=1))


@lru_cache(maxsize=2)
def real(data: str) -> Doubtful:
    """Return all matrices of the digits or of ETH-80, with the probabilities of a logistic regression on logarithms."""
    X, y = load_digits_covariances() if data == "digits" else load_arrays(FILES[data], data, "y")
    vectors = log_vectors(X)
    judge = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(vectors, y)
    return Doubtful(X, judge.predict_proba(vectors), y, None)


def vote(known: Array, n_votes: int, random_share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw votes (N, C) with known probabilities (N, C); also return the class (N,) with most votes, ties at random.

    Each vote is random with probability ``random_share``.
    """
    seen = (1 - random_share) * known + random_share / known.shape[1]
    votes = np.stack([rng.multinomial(n_votes, row) for row in seen])
    return votes, (votes + rng.uniform(0, 0.5, votes.shape)).argmax(axis=1)


def fitted(method: str, X: Array, votes: Array, majority: Array, known: Array, settings: Record) -> RiemannianLVQ:
    """Train by a method. If each vote is a sample, there are fewer epochs, so that the number of steps is the same."""
    n_votes = int(votes[0].sum())
    if method == "start, majority":
        return RiemannianLVQ(**settings | {"max_epochs": 0}).fit(X, majority)
    if method == "RSLVQ, majority":
        return RiemannianLVQ(**settings).fit(X, majority)
    if method == "RSLVQ, each vote a sample":
        labels = np.tile(np.arange(votes.shape[1]), len(votes)).repeat(votes.ravel())
        fewer = {"max_epochs": max(1, settings["max_epochs"] // n_votes)}
        return RiemannianLVQ(**settings | fewer).fit(X.repeat(n_votes, axis=0), labels)
    return RiemannianLVQ(cost="plvq", **settings).fit(X, votes / n_votes if method.endswith("votes") else known)


def measured(model: RiemannianLVQ, test: Doubtful, centres: Array) -> Record:
    """Compare a model with the known probabilities, the true labels, and the prototypes that it should have."""
    sqdist = model.transform(test.X) ** 2

    def lost(sigma2: float) -> float:
        found = log_softmax(-sqdist / (2 * sigma2), axis=1)
        return float(np.mean(np.sum(xlogy(test.known, test.known) - test.known * found, axis=1)))

    span = np.log(model.sigma2_) - 4, np.log(model.sigma2_) + 4
    best = minimize_scalar(lambda log_sigma2: lost(float(np.exp(log_sigma2))), bounds=span, method="bounded")
    answers, proba = sqdist.argmin(axis=1), softmax(-sqdist / (2 * model.sigma2_), axis=1)
    rows = np.arange(len(answers))
    apart = np.diag(AffineInvariant().sqdist(centres, model.prototypes_))
    return {
        "lost": lost(model.sigma2_),
        "lost_at_best": float(best.fun),
        "accuracy": float(np.mean(answers == test.y)),
        "likeliest": float(np.mean(answers == test.known.argmax(axis=1))),
        "calibration": float(np.mean(np.abs(proba[rows, answers] - test.known[rows, answers]))),
        "distance": float(np.sqrt(apart.mean())),
        "sigma2": model.sigma2_,
    }


def train(
    *,
    repetition: int,
    method: str,
    data: str,
    n_votes: int,
    max_epochs: int,
    n_train: int = 200,
    separation: float = 0.0,
    random_share: float = 0.0,
) -> Record:
    """Draw votes, train, and measure on matrices without votes.

    Returns
    -------
    dict
        lost : mean log-likelihood that the model loses to the known probabilities (a Kullback-Leibler divergence);
        lost_at_best : the same at the sigma2 where it is smallest; accuracy : against true labels; likeliest : the
        share of predictions that are the likeliest class; calibration : mean absolute difference between the
        probability of the predicted class and the known one; distance : root mean square distance of the prototypes
        from the known centres or, on real data, from prototypes learned from true labels; sigma2.
    """
    rng = np.random.default_rng(repetition)
    if data == "gaussians":
        pool = gaussians(n_train + N_TEST, separation, rng)
        settings: dict[str, Any] = {"sigma2": VARIANCE, "step_size": "paper"}
    else:
        pool, settings = real(data), dict(RULE)
        order = rng.permutation(len(pool.y))[: n_train + N_TEST]
        pool = Doubtful(pool.X[order], pool.known[order], pool.y[order], None)
    settings |= {"max_epochs": max_epochs, "random_state": repetition}
    X, known = pool.X[:n_train], pool.known[:n_train]
    votes, majority = vote(known, n_votes, random_share, rng)
    centres = pool.centres
    if centres is None:
        centres = RiemannianLVQ(**settings).fit(X, pool.y[:n_train]).prototypes_
    test = Doubtful(pool.X[n_train:], pool.known[n_train:], pool.y[n_train:], centres)
    return measured(fitted(method, X, votes, majority, known, settings), test, centres)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: twenty repetitions per scene, 20 epochs; ``quick`` has one, of 2 epochs."""
    found = []
    for (scene, settings), repetition in product(SCENES.items(), range(1 if quick else 20)):
        data = settings["data"]
        if data in FILES and not is_available(FILES[data]):
            continue
        own = settings | {"max_epochs": 2 if quick else 20}
        for method in METHODS:
            # Learning from the known probabilities does not depend on the votes: one scene per problem is enough.
            if method != METHODS[-1] or scene in ("overlap-5", "digits-5", "full256-5"):
                found.append(Job(f"soft-{scene}", method, repetition, own, train))
    return found


def smoke() -> list[Job]:
    """Return jobs of seconds: few samples, three epochs."""
    settings = SCENES["overlap-5"] | {"n_train": 60, "max_epochs": 3}
    return [Job("soft-overlap-5", method, 0, settings, train) for method in METHODS]
