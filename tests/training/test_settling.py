"""Training with a default step size ends once the prototypes have settled: when, how far they are, and never else."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import (
    AdaptiveStep,
    Annealed,
    Checkpoint,
    Constant,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    LearnedLogEuclidean,
    RiemannianLVQ,
    StepDecay,
    StepSize,
)
from rplvq.datasets import make_syn2
from rplvq.training import Progress, Settling, State
from tests.problems import spd_classes

X, Y = make_syn2(40, random_state=0)
SETTINGS = {"sigma2": 0.2, "random_state": 0}


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "log_cholesky", "bures_wasserstein"])
def test_what_is_left_out_moves_no_prototype_by_two_percent_of_the_distance_of_classes(manifold):
    default = RiemannianLVQ(manifold, **SETTINGS).fit(X, Y)
    whole = RiemannianLVQ(manifold, **SETTINGS, step_size=GeometricDecay(default.step_size_)).fit(X, Y)
    assert default.n_epochs_ < whole.n_epochs_ == 100
    assert_array_equal(default.history_["cost"], whole.history_["cost"][: default.n_epochs_])
    codes, settled = (model.trainer_.manifold.encode(model.prototypes_) for model in (whole, default))
    geometry = whole.trainer_.manifold
    apart = geometry.sqdist(codes, codes)[~np.eye(4, dtype=bool)].min() ** 0.5
    assert np.diag(geometry.sqdist(codes, settled)).max() ** 0.5 < 0.02 * apart
    fresh, _ = make_syn2(250, random_state=1)
    assert np.mean(default.predict(fresh) != whole.predict(fresh)) < 0.005


def at(epoch, prototypes, step_schedule, n_epochs, sigma2=None, memory=None):
    state = State(prototypes, np.arange(len(prototypes)), sigma2 or Constant(1.0), step_schedule, memory=memory)
    state = state.at_epoch(epoch, n_epochs)
    return Progress(state, state, np.inf, (), None)


@pytest.mark.parametrize("schedule", [Constant(0.3), GeometricDecay(2.0), StepDecay(1.0, every=7)], ids=repr)
def test_the_decision_is_the_bound_on_the_rest_of_the_way(schedule):
    n_epochs, first = 40, np.array([[0.0], [5.0], [9.0]])  # the nearest classes are 4 apart
    rest = sum(schedule(epoch, n_epochs) for epoch in range(21, 41)) / schedule(20, n_epochs)
    for share, stopped in ((0.98, True), (1.02, False)):
        moved = first + np.array([[0.0], [0.3], [-1.0]]) * share * 0.01 * 4.0 / rest
        # The third prototype comes nearer to the second, by far less than the bound is apart from the decision.
        hook = Settling(EuclideanVectors(), n_epochs, first)
        assert hook(at(20, moved, schedule, n_epochs)).stopped is stopped


def test_it_looks_every_tenth_epoch_but_the_last():
    looked = []
    for epoch in range(1, 41):
        same = np.array([[0.0], [1.0]])
        if Settling(EuclideanVectors(), 40, same)(at(epoch, same, Constant(1.0), 40)).stopped:
            looked.append(epoch)
    assert looked == [10, 20, 30]


@pytest.mark.parametrize(
    ("sigma2", "memory", "stopped"),
    [(Constant(1.0), None, True), (Annealed(1.0, beta=0.999, power=1.0), None, False), (Constant(1.0), "some", False)],
)
def test_it_goes_on_while_more_than_the_step_size_changes(sigma2, memory, stopped):
    same = np.array([[0.0], [1.0]])
    progress = at(20, same, GeometricDecay(1.0), 40, sigma2, memory)
    assert Settling(EuclideanVectors(), 40, same)(progress).stopped is stopped


@pytest.mark.parametrize(
    "settings",
    [
        {"step_size": 0.1},
        {"step_size": StepSize(GeometricDecay(0.1))},
        {"step_size": "paper"},
        {"step_size": AdaptiveStep()},
        {"sigma2": Annealed(0.6, beta=0.999, power=1.0)},
        {"growth": [Grow()]},
        {"metric": LearnedLogEuclidean()},
    ],
    ids=repr,
)
def test_every_other_training_takes_all_epochs(settings):
    model = RiemannianLVQ(**SETTINGS | {"max_epochs": 40} | settings).fit(X, Y)
    assert model.n_epochs_ == 40


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("broken_at", [19, 20, 29, 30])
def test_a_resumed_fit_ends_at_the_same_epoch_and_bits(broken_at, is_complex, weighted, tmp_path):
    S, y = spd_classes(per_class=12, n_classes=2, dtype=complex if is_complex else float)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(y)) if weighted else None
    whole = RiemannianLVQ(**SETTINGS | {"sigma2": 1.0}, early_stopping=True).fit(S, y, weights)
    path = tmp_path / "fit.npz"

    def stop(report):
        return report.epoch == broken_at

    settings = SETTINGS | {"sigma2": 1.0, "early_stopping": True}
    RiemannianLVQ(**settings, callbacks=[Checkpoint(path), stop]).fit(S, y, weights)
    again = RiemannianLVQ(**settings).fit(S, y, weights, resume=path)
    assert again.n_epochs_ == whole.n_epochs_
    assert_array_equal(again.prototypes_, whole.prototypes_)


# --- fewer epochs for few samples


def epochs_of(*, per_class=40, **parameters):
    """The number of epochs for which a fit was planned, and the data."""
    S, y = make_syn2(per_class, random_state=0)
    model = RiemannianLVQ("log_euclidean", random_state=0, **parameters).fit(S, y)
    return model.trainer_.max_epochs, model, (S, y)


@pytest.mark.parametrize(
    ("per_class", "max_epochs", "wanted"),
    [(40, 100, 15), (75, 100, 12), (120, 100, 39), (120, 300, 117), (120, 20, 20), (40, 8, 8)],
)
def test_a_fit_that_held_out_samples_choose_has_as_many_epochs_as_samples_need(per_class, max_epochs, wanted):
    planned, model, _ = epochs_of(per_class=per_class, max_epochs=max_epochs)
    assert planned == wanted
    assert model.n_epochs_ <= wanted


@pytest.mark.parametrize(
    "parameters",
    [
        {"sigma2": 0.2},
        {"step_size": 0.01},
        {"batch_size": 8},
        {"early_stopping": True},
        {"growth": [Grow()]},
        {"sigma2": HeldOut([Annealed(), "untrained"])},
    ],
    ids=lambda given: next(iter(given)),
)
def test_all_other_fits_keep_their_number_of_epochs(parameters):
    assert epochs_of(max_epochs=30, **parameters)[0] == 30


def test_a_learned_metric_keeps_its_number_of_epochs():
    S, y = make_syn2(10, random_state=0)
    model = RiemannianLVQ(LearnedLogEuclidean(), max_epochs=30, random_state=0).fit(S, y)
    assert model.trainer_.max_epochs == 30


def test_the_larger_steps_of_fewer_epochs_go_as_far():
    planned, model, (S, y) = epochs_of(per_class=60, sigma2=HeldOut([0.1]))
    assert planned == 15
    whole = RiemannianLVQ("log_euclidean", sigma2=0.1, random_state=0).fit(S, y)
    assert model.step_size_ == pytest.approx(100 / 15 * whole.step_size_)
    fresh, labels = make_syn2(250, random_state=1)
    assert abs(model.score(fresh, labels) - whole.score(fresh, labels)) < 0.02
    assert np.mean(model.predict(fresh) != whole.predict(fresh)) < 0.06
