"""The defaults of training: few samples, few epochs, any size of batches, streams; no step is ever cut."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import GeometricDecay, HeldOut, RiemannianLVQ
from rplvq.arrays import Samples
from rplvq.datasets import load_digits_covariances, make_syn2
from rplvq.features import trial_covariances
from rplvq.schedules import blended_sigma2, initial_evidence
from tests.cases import EVERY
from tests.problems import spd_classes, vector_classes

TRAINS = HeldOut(["auto"])


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])
def test_the_default_does_not_end_below_the_class_means_on_samples_that_are_hard_to_beat(manifold):
    """On SynII with 30 samples per class, means over three draws; always training ends below."""
    scores = []
    for seed in range(3):
        every, classes = make_syn2(230, random_state=seed)
        train = np.concatenate([np.flatnonzero(classes == label)[:30] for label in np.unique(classes)])
        X, y, fresh, labels = every[train], classes[train], np.delete(every, train, 0), np.delete(classes, train)
        models = [
            RiemannianLVQ(manifold, random_state=seed),
            RiemannianLVQ(manifold, max_epochs=0),
            RiemannianLVQ(manifold, sigma2="half_median", step_size="paper", max_epochs=20, random_state=seed),
        ]
        scores.append([model.fit(X, y).score(fresh, labels) for model in models])
    default, means, paper = np.mean(scores, axis=0)
    assert default >= means - 0.003
    assert paper < means - 0.003


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])
def test_few_samples_of_many_channels_keep_class_means_without_errors(manifold):
    """Eight samples per class of 24 x 24 matrices, as in a short EEG session."""
    rng = np.random.default_rng(0)
    labels = np.arange(16) % 2
    louder = np.where(np.arange(24) < 6, 1.6, 1.0)[:, None] ** labels[:, None, None]  # six channels of one class
    X = trial_covariances(louder * rng.normal(size=(16, 24, 200)))
    means = RiemannianLVQ(manifold, max_epochs=0).fit(X, labels)
    assert means.score(X, labels) == 1
    model = RiemannianLVQ(manifold, max_epochs=100, random_state=0).fit(X, labels)
    assert model.n_epochs_ == 0
    assert_array_equal(model.prototypes_, means.prototypes_)


# Both rules train in any case. On 24 samples this can add an error or three, but here only cuts are of interest.
@pytest.mark.filterwarnings("ignore:training raised the training error:rplvq.exceptions.DivergenceWarning")
@EVERY
@pytest.mark.parametrize("max_epochs", [1, 5])
def test_few_epochs_train_and_cut_no_weight(case, max_epochs):
    X, y = case.points(np.random.default_rng(0), 24, 3), np.repeat([0, 1], 12)
    for sigma2 in (TRAINS, "half_median"):
        model = RiemannianLVQ(case.manifold(3), sigma2=sigma2, max_epochs=max_epochs, random_state=0).fit(X, y)
        assert model.history_["epoch"].tolist() == [*range(1, max_epochs + 1)]
        assert (model.history_["n_capped"] == 0).all()
        assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("cost", ["rslvq", "plvq"])
@pytest.mark.parametrize("batch_size", [1, 8, 60, None])
def test_no_weight_is_cut_for_any_size_of_batches(cost, batch_size):
    """With more than two prototypes the weights of a full batch are larger than one before they are averaged."""
    X, y = vector_classes(per_class=30, n_classes=4, shift=0.5)
    for per_class in (1, 3):
        settings = {"prototypes_per_class": per_class, "batch_size": batch_size, "max_epochs": 20, "random_state": 0}
        model = RiemannianLVQ("euclidean_vectors", cost, sigma2=0.3, **settings).fit(X, y)
        assert (model.history_["n_capped"] == 0).all()


@pytest.mark.parametrize("cost", ["rslvq", "plvq"])
def test_only_a_last_batch_that_is_smaller_may_be_cut(cost):
    """The step is that of whole batches: 120 samples are 17 batches of 7, and one sample that may be cut."""
    X, y = vector_classes(per_class=30, n_classes=4, shift=0.5)
    settings = {"sigma2": 0.3, "batch_size": 7, "max_epochs": 20, "random_state": 0}
    model = RiemannianLVQ("euclidean_vectors", cost, **settings).fit(X, y)
    assert (model.history_["n_capped"] <= 1 * len(model.prototypes_)).all()
    whole = RiemannianLVQ("euclidean_vectors", cost, **settings).fit(X[:-1], y[:-1])
    assert (whole.history_["n_capped"] == 0).all()


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean"])
def test_batches_of_all_sizes_move_prototypes_about_as_far(manifold):
    X, y = spd_classes(per_class=16, n_classes=3, spread=0.6)
    settings = {"sigma2": 0.5, "max_epochs": 100, "random_state": 0}
    means = RiemannianLVQ(manifold, max_epochs=0).fit(X, y)
    moved, steps = [], []
    for batch_size in (1, 8, None):
        model = RiemannianLVQ(manifold, batch_size=batch_size, **settings).fit(X, y)
        distances = np.diag(model.transform(means.prototypes_))
        moved.append(distances)
        steps.append(model.step_size_)
    assert steps == pytest.approx([steps[0], 8 * steps[0], 48 * steps[0]])
    assert (moved[0] > 0).all()
    for other in moved[1:]:
        assert (np.abs(other - moved[0]) < 0.25 * moved[0]).all()


def test_a_fit_says_that_it_leaves_the_step_of_the_user_unused():
    """On SynII no training beats the class means, and the default step is nobody's wish."""
    X, y = make_syn2(30, random_state=0)
    with pytest.warns(UserWarning, match=r"step_size=GeometricDecay\(.*\) is not used, because held-out samples chose"):
        model = RiemannianLVQ(step_size=GeometricDecay(0.1), random_state=0).fit(X, y)
    assert model.n_epochs_ == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RiemannianLVQ(random_state=0).fit(X, y)
        RiemannianLVQ(step_size=GeometricDecay(0.1), max_epochs=0).fit(X, y)


def test_partial_fit_takes_the_rule_for_sigma2_and_cuts_nothing():
    X, y = load_digits_covariances()
    model = RiemannianLVQ("log_euclidean", random_state=0).partial_fit(X[:100], y[:100])
    means = RiemannianLVQ("log_euclidean", max_epochs=0).fit(X[:100], y[:100])
    trainer, state = means.trainer_, means.state_
    samples = Samples(trainer.manifold.encode(X[:100]), y[:100])
    rule = blended_sigma2(initial_evidence(trainer.manifold, trainer.cost, state.prototypes, state.labels, samples))
    assert model.sigma2_ == pytest.approx(rule, rel=1e-9)
    assert model.history_["step_size"] == pytest.approx([rule * 10 / 100], rel=1e-9)  # K sigma2 / N
    assert model.choice_ is None
    assert model.history_["n_capped"].tolist() == [0]
    for start in range(100, 600, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    assert model.history_["n_capped"].tolist() == [0] * 6
    assert model.n_epochs_ == 6
    assert model.score(X[600:], y[600:]) > 0.5


def test_partial_fit_with_candidates_tries_them_on_its_first_batch():
    X, y = load_digits_covariances()
    rule = HeldOut([0.1, 0.4, "untrained"])
    model = RiemannianLVQ("log_euclidean", sigma2=rule, max_epochs=10, random_state=0).partial_fit(X[:200], y[:200])
    choice = model.choice_
    assert [(one.name, one.sigma2) for one in choice.tried] == [("0.1", 0.1), ("0.4", 0.4)]  # a stream must train
    assert choice.trains
    assert model.state_.sigma2 == float(choice.chosen) == choice.tried[choice.winner].sigma2
    assert min(one.n_folds for one in choice.tried) >= 1
    assert model.partial_fit(X[200:400], y[200:400]).choice_ is choice  # later calls keep it
    assert model.n_epochs_ == 2


def test_partial_fit_after_fit_keeps_the_choice():
    X, y = spd_classes(per_class=30, spread=0.6)
    model = RiemannianLVQ("log_euclidean", max_epochs=24, random_state=0).fit(X, y)
    choice, n_epochs, calibration = model.choice_, model.n_epochs_, model.sigma2_ / model.state_.sigma2
    assert {"auto", "untrained"} <= {one.name for one in choice.tried}
    assert calibration == pytest.approx(choice.calibration)
    model.partial_fit(X, y)
    assert model.choice_ is choice
    assert model.n_epochs_ == n_epochs + 1
    assert model.sigma2_ == pytest.approx(model.state_.sigma2 * calibration)
    clean = RiemannianLVQ("log_euclidean", sigma2=1.0, max_epochs=1, random_state=0).fit(X, y)
    assert clean.choice_ is None
    model.set_params(sigma2=1.0).fit(X, y)
    assert model.choice_ is None  # a new fit forgets the choice of the old one
    assert model.sigma2_ == 1.0
