"""The sigma2 that fits the posterior best is the best one of all, not of a neighbourhood."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rplvq import GLVQ, PLVQ, RSLVQ
from rplvq.costs import FlatGaussian, SpreadRSLVQ, calibrated_loss, log_proba_of


class Listed:
    """A cost that cannot be hashed, with the posterior of the mixture."""

    __hash__ = None

    def __call__(self, *arguments):
        return RSLVQ()(*arguments)

    def log_proba(self, *arguments):
        return RSLVQ().log_proba(*arguments)


COSTS = {
    "unhashable": Listed(),
    "rslvq": RSLVQ(),
    "priors": RSLVQ((0.2, 0.8)),
    "summed": GLVQ() + 0.5 * PLVQ((0.3, 0.7)),
    "glvq": GLVQ(),
    "spread": SpreadRSLVQ([1.0, 3.0], FlatGaussian(2)),
}


def test_the_lower_of_two_minima_is_found():
    sqdist = np.array([[6.0, 24, 27, 6], [28, 28, 37, 10], [21, 18, 33, 20]])
    for start in (1e-3, 1.0, 30.0, 1e3):
        loss, sigma2 = calibrated_loss(RSLVQ(), sqdist, np.array([0, 1, 1]), np.array([0, 0, 1, 1]), start)
        assert_allclose((loss, sigma2), (0.6267, 3.01), rtol=5e-3)


# The search with one prototype per class ends where a factor of e would change the loss by less than 1e-5.
@pytest.mark.parametrize(("labels", "atol"), [([0, 1, 0, 1], 1e-7), ([0, 1], 2e-5)], ids=["two each", "one each"])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
def test_no_value_in_reach_is_better(cost, soft, labels, atol):
    rng = np.random.default_rng(0)
    labels = np.array(labels)
    for _ in range(12):
        n = int(rng.integers(2, 6))
        sqdist = rng.integers(1, 40, (n, len(labels))).astype(float) * 10.0 ** rng.integers(-2, 3)
        own = rng.dirichlet(np.ones(2), n) if soft else np.eye(2)[rng.integers(0, 2, n)]
        weights = rng.uniform(0.1, 2, n)
        start = float(np.median(sqdist))
        loss, sigma2 = calibrated_loss(cost, sqdist, own if soft else own.argmax(axis=1), labels, start, weights)

        def at(value):
            return -weights @ (own * log_proba_of(cost, sqdist, labels, value)).sum(axis=1) / weights.sum()  # noqa: B023

        assert loss == pytest.approx(at(sigma2), rel=1e-9, abs=1e-12)
        assert loss <= min(map(at, start * np.geomspace(1e-4, 1e4, 150))) + atol
