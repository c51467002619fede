"""A step size of 0 moves nothing, and schedules may divide by the number of epochs."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import AffineInvariant, LearnedLogEuclidean, RiemannianLVQ, StepSize, Trainer, load_model
from rplvq.arrays import Samples
from rplvq.parts import register_part
from rplvq.schedules import Constant
from rplvq.training import EpochScore
from tests.problems import spd_classes, vector_classes

X, Y = spd_classes(n_classes=3, per_class=10)


@register_part
@attrs.frozen
class LateStart:
    """0 in the first epochs; it divides by the number of epochs, as the schedule of a user may do."""

    rest: int = 2
    peak: float = 0.2

    def __call__(self, epoch, n_epochs):
        return self.peak * (epoch > self.rest) * (2 - epoch / n_epochs)


@attrs.frozen
class Falling:
    """A schedule of sigma2 that divides by the number of epochs, from ``first`` to half of it."""

    first: float = 2.0

    def __call__(self, epoch, n_epochs):
        return self.first * (1 - epoch / n_epochs / 2)


@pytest.mark.parametrize("batch_size", [1, 7, None])
@pytest.mark.parametrize(
    "manifold", ["affine_invariant", AffineInvariant(compiled=False), "log_euclidean", LearnedLogEuclidean()], ids=str
)
def test_epochs_of_step_size_0_move_nothing_and_later_ones_do(manifold, batch_size):
    seen = []
    params = {"sigma2": 1.0, "batch_size": batch_size, "random_state": 0}
    model = RiemannianLVQ(
        manifold, step_size=LateStart(), max_epochs=4, callbacks=[lambda report: seen.append(report.state)], **params
    ).fit(X, Y)
    means = RiemannianLVQ(manifold, max_epochs=0, **params).fit(X, Y)
    for state in seen[:2]:
        assert_array_equal(np.asarray(state.prototypes), np.asarray(means.state_.prototypes))
    assert not np.allclose(model.prototypes_, means.prototypes_, rtol=1e-3)
    assert_array_equal(model.history_["step_size"] == 0, [True, True, False, False])
    assert_array_equal(model.history_["n_capped"][:2], 0)
    assert model.history_["cost"][0] == model.history_["cost"][1]


def test_the_row_of_such_an_epoch_is_the_score_of_its_prototypes():
    weights = np.random.default_rng(0).uniform(0.5, 3.0, len(X))
    model = RiemannianLVQ(sigma2=1.0, step_size=LateStart(1), max_epochs=2, random_state=0)
    plain = model.fit(X, Y, sample_weight=weights).history_
    scored = model.set_params(callbacks=[EpochScore()]).fit(X, Y, sample_weight=weights).history_
    assert_allclose(plain["cost"][0], scored["cost"][0], rtol=1e-12)
    assert plain["training_error"][0] == scored["training_error"][0]


def test_a_stream_rests_and_the_model_can_be_saved_meanwhile(tmp_path):
    model = RiemannianLVQ(sigma2=1.0, step_size=StepSize(LateStart()), max_epochs=4, random_state=0)
    first = model.partial_fit(X, Y).prototypes_
    model.save(tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert_array_equal(model.partial_fit(X, Y).prototypes_, first)
    assert not np.allclose(model.partial_fit(X, Y).prototypes_, first, rtol=1e-3)
    assert_array_equal(again.partial_fit(X, Y).partial_fit(X, Y).prototypes_, model.prototypes_)


def test_distributed_training_rests_too():
    da = pytest.importorskip("dask.array", reason='needs dask: pip install ".[dask]" in the folder of rplvq')
    from rplvq.distributed import DistributedLVQ

    model = RiemannianLVQ(sigma2=1.0, step_size=LateStart(), max_epochs=3, batch_size=None, random_state=0)
    local = model.fit(X, Y)
    lazy = DistributedLVQ(model).fit(da.from_array(X, chunks=(7, 3, 3)), Y)
    assert_allclose(lazy.prototypes_, local.prototypes_, rtol=1e-9, atol=1e-12)
    assert_allclose(lazy.history_["cost"], local.history_["cost"], rtol=1e-12)
    assert_array_equal(lazy.history_["step_size"] == 0, [True, True, False])


@pytest.mark.parametrize("max_epochs", [0, 1, 3])
def test_schedules_that_divide_by_the_number_of_epochs_work_for_any_number(max_epochs):
    params = {"sigma2": Falling(), "step_size": LateStart(0), "max_epochs": max_epochs, "random_state": 0}
    model = RiemannianLVQ(**params).fit(X, Y)
    assert model.n_epochs_ == max_epochs
    assert model.sigma2_ == (1.0 if max_epochs else 2.0)
    model.partial_fit(X, Y)
    RiemannianLVQ(**params).partial_fit(X, Y).partial_fit(X, Y)


def test_the_default_step_size_asks_a_schedule_of_sigma2_that_divides():
    model = RiemannianLVQ(sigma2=Falling(0.01), step_size="auto", max_epochs=0).fit(X, Y)
    assert model.state_.step_size == pytest.approx(model.state_.sigma2)  # the share of a fit of one epoch


def test_a_constant_step_size_of_0_is_refused():
    points, classes = vector_classes()
    with pytest.raises(ValueError, match="value must be a positive finite number"):
        Constant(0.0)
    with pytest.raises(ValueError, match="step_size must be positive and finite, got 0"):
        RiemannianLVQ("euclidean_vectors", step_size=0).fit(points, classes)


def test_the_trainer_rests_without_an_estimator():
    trainer, rng = (
        Trainer(AffineInvariant(), sigma2=1.0, step_size=LateStart(9), max_epochs=3),
        np.random.default_rng(0),
    )
    samples = Samples(X, Y)
    start = trainer.init(samples, 3, rng)
    state, history = trainer.run(start, samples, rng)
    assert state.prototypes is start.prototypes
    assert len(history["cost"]) == 3
