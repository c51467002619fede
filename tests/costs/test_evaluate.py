"""A cost may return a plain tuple everywhere, and one for class indices gets a sentence at soft labels."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import GLVQ, RSLVQ, AffineInvariant, Grow, HeldOut, Prune, Representability, RiemannianLVQ, SPDProjection
from rplvq.costs import Combinable, SummedCost, evaluate
from rplvq.inspection import calibrate_sigma2
from rplvq.protocols import Evaluation
from rplvq.testing import check_cost
from tests.problems import spd_classes

X, Y = spd_classes(n_classes=3, per_class=10)
SOFT = np.random.default_rng(0).dirichlet(np.ones(3), size=len(X))


@attrs.frozen
class Plain(Combinable):
    """RSLVQ that returns a plain tuple, or a list."""

    kind: type = tuple

    def __call__(self, sqdist, targets, labels, sigma2):
        return self.kind(RSLVQ()(sqdist, targets, labels, sigma2))

    def log_proba(self, sqdist, labels, sigma2):
        return RSLVQ().log_proba(sqdist, labels, sigma2)

    def largest_slope(self, sigma2):
        return RSLVQ().largest_slope(sigma2)


@attrs.frozen
class HardOnly:
    """Generalized LVQ as a user may write it, who never thinks of soft labels."""

    def __call__(self, sqdist, targets, labels, sigma2):
        own, rows = labels == targets[:, None], np.arange(len(sqdist))
        near, far = (np.where(mask, sqdist, np.inf) for mask in (own, ~own))
        a, b = near.min(axis=1), far.min(axis=1)
        slope = np.zeros_like(sqdist)
        slope[rows, near.argmin(axis=1)] = 2 * b / (a + b) ** 2
        slope[rows, far.argmin(axis=1)] = -2 * a / (a + b) ** 2
        return (a - b) / (a + b), slope


@attrs.frozen
class Lookup:
    """A cost that uses class indices as indices."""

    def __call__(self, sqdist, targets, labels, sigma2):
        own = np.eye(labels.max() + 1)[targets][:, labels]
        return (own * sqdist).sum(axis=1), own


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"batch_size": None},
        {"batch_size": 7, "early_stopping": True},
        {"sigma2": HeldOut(["auto", 1.0]), "max_epochs": 12},
        {"growth": [Grow(every=1, gain=None, min_samples=3), Prune(every=2)], "max_epochs": 4},
        {"metric": "log_euclidean", "step_size": "adaptive"},
    ],
    ids=["default", "full batch", "early stopping", "held out", "growth", "adaptive"],
)
@pytest.mark.parametrize("kind", [tuple, list])
def test_a_plain_tuple_trains_as_an_evaluation_does(kind, params):
    common = {"metric": AffineInvariant(compiled=False), "max_epochs": 3, "random_state": 0} | params
    plain, good = (RiemannianLVQ(cost=cost, **common).fit(X, Y) for cost in (Plain(kind), RSLVQ()))
    assert_array_equal(plain.prototypes_, good.prototypes_)
    assert_array_equal(plain.history_["cost"], good.history_["cost"])


def test_a_plain_tuple_works_in_sums_calibration_streams_and_projection():
    check_cost(0.5 * Plain() + Representability(), pickling=False)
    metric = AffineInvariant(compiled=False)  # no kernel knows a plain tuple, and compiled steps round in another way
    costs = Plain() + GLVQ(), RSLVQ() + GLVQ()
    models = [RiemannianLVQ(metric, cost=cost, sigma2=2.0, random_state=0) for cost in costs]
    for model in models:
        model.partial_fit(X, Y).partial_fit(X, Y)
    assert_array_equal(models[0].prototypes_, models[1].prototypes_)
    assert calibrate_sigma2(models[0], X, Y).sigma2_ == calibrate_sigma2(models[1], X, Y).sigma2_
    bases = [SPDProjection(2, cost=cost, max_iter=3).fit(X, Y) for cost in (Plain(), RSLVQ())]
    assert_array_equal(bases[0].transform(X), bases[1].transform(X))


def test_a_plain_tuple_trains_on_dask_arrays():
    da = pytest.importorskip("dask.array", reason='needs dask: pip install ".[dask]" in the folder of rplvq')
    from rplvq.distributed import DistributedLVQ

    plain, good = (
        DistributedLVQ(RiemannianLVQ(cost=cost, batch_size=None, max_epochs=2, random_state=0)).fit(
            da.from_array(X, chunks=(11, 3, 3)), Y
        )
        for cost in (Plain(), RSLVQ())
    )
    assert_array_equal(plain.prototypes_, good.prototypes_)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, from the lines before the one that fails
@pytest.mark.parametrize("batch_size", [1, 4, None])
@pytest.mark.parametrize("cost", [HardOnly(), Lookup(), SummedCost((Representability(), HardOnly()))], ids=str)
def test_a_cost_for_class_indices_gets_a_sentence_at_soft_labels(cost, batch_size):
    model = RiemannianLVQ(cost=cost, sigma2=1.0, batch_size=batch_size, max_epochs=2)
    name = "Lookup" if isinstance(cost, Lookup) else "HardOnly"
    with pytest.raises(ValueError, match=rf"cost {name}.*soft labels.*one class index per sample.*argmax"):
        model.fit(X, SOFT)
    assert not hasattr(model, "state_")
    model.fit(X, Y)


def test_a_cost_that_refuses_soft_labels_itself_keeps_its_own_words():
    with pytest.raises(ValueError, match=r"^cost RSLVQ learns from one class per sample; for soft labels use"):
        RiemannianLVQ(sigma2=1.0, max_epochs=1).fit(X, SOFT)


def test_other_exceptions_of_a_cost_are_not_changed():
    def broken(sqdist, targets, labels, sigma2):
        raise IndexError("my own mistake")

    with pytest.raises(IndexError, match="my own mistake"):
        evaluate(broken, np.ones((2, 2)), np.array([0, 1]), np.array([0, 1]), 1.0)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (np.ones(2), r"must return \(loss, slope\), got <class 'numpy.ndarray'>"),
        (None, r"must return \(loss, slope\), got <class 'NoneType'>"),
        ((np.ones(2), np.ones((2, 2)), 3), r"must return \(loss, slope\)"),
        ((1.0, np.ones((2, 3))), r"loss must have shape \(2,\), got \(\)"),
        ((np.ones(2), np.ones((3, 2))), r"slope must have shape \(2, 3\), got \(3, 2\)"),
    ],
)
def test_a_wrong_answer_is_named_by_the_trainer(answer, sentence):
    with pytest.raises(TypeError, match=sentence):
        evaluate(lambda *_: answer, np.ones((2, 3)), np.array([0, 1]), np.array([0, 1, 1]), 1.0)


def test_lists_of_numbers_become_arrays():
    found = evaluate(lambda *_: [[1, 2], [[0, 1], [1, 0]]], np.ones((2, 2)), np.array([0, 1]), np.array([0, 1]), 1.0)
    assert isinstance(found, Evaluation)
    assert found.loss.shape == (2,)
    assert found.slope.shape == (2, 2)
