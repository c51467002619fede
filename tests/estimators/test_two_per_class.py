"""prototypes_per_class="auto": held-out samples choose between one and two prototypes per class."""

import pickle

import attrs
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy.linalg import expm

from rplvq import ClassMeans, EarlyStopping, Grow, HeldOut, RejectOption, RiemannianLVQ, TransferClassifier, load_model
from rplvq.costs import GLVQ
from rplvq.schedules import GeometricDecay, Share
from tests.covering import covering
from tests.problems import spd_classes


def crossed(n_each=30, seed=0, dtype=float):
    """Two classes of two distant clusters each, at the corners of a square: class means cannot tell them apart."""
    rng = np.random.default_rng(seed)
    corners = np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]])
    logs = [np.diag(corner + 0.3 * rng.normal(size=3)) for corner in corners for _ in range(n_each)]
    noise = 0.2 * rng.normal(size=(len(logs), 3, 3))
    if dtype is complex:
        noise = noise + 0.2j * rng.normal(size=noise.shape)
    X = np.array([expm(log + own + own.conj().T) for log, own in zip(logs, noise, strict=True)])
    order = rng.permutation(len(X))
    return X[order], np.repeat([0, 0, 1, 1], n_each)[order]


def automatic(metric="affine_invariant", **settings):
    return RiemannianLVQ(metric, prototypes_per_class="auto", random_state=0, **settings)


CASES = covering(
    ["affine_invariant", "log_euclidean", "tangent"],
    [float, complex],
    ["auto", 0.1, HeldOut(("auto", "half_median")), GeometricDecay()],
    ["auto", Share(0.3)],
    [False, EarlyStopping(0.2)],
    ["none", "weights", "groups"],
)


@pytest.mark.parametrize(("metric", "dtype", "sigma2", "step_size", "stopping", "extra"), CASES)
def test_classes_of_two_clusters_get_two_prototypes(metric, dtype, sigma2, step_size, stopping, extra):
    X, y = crossed(dtype=dtype)
    places = np.arange(len(y))
    more = {"none": {}, "weights": {"sample_weight": 1 + places % 3}, "groups": {"groups": places // 2}}
    model = automatic(metric, sigma2=sigma2, step_size=step_size, early_stopping=stopping).fit(X, y, **more[extra])
    assert_array_equal(model.prototype_labels_, [0, 0, 1, 1])
    assert model.choice_.chosen.endswith("two per class")
    assert model.choice_.trains
    fresh, labels = crossed(seed=1, dtype=dtype)
    one = RiemannianLVQ(metric, sigma2=1.0, random_state=0).fit(X, y)
    assert model.score(fresh, labels) > one.score(fresh, labels) + 0.1


@pytest.mark.parametrize("metric", ["affine_invariant", "log_euclidean"])
def test_plain_classes_keep_the_fit_with_one(metric):
    X, y = spd_classes(per_class=40)
    model = automatic(metric).fit(X, y)
    same = RiemannianLVQ(metric, random_state=0).fit(X, y)
    assert_array_equal(model.prototypes_, same.prototypes_)
    assert model.sigma2_ == same.sigma2_
    tried = [one for one in model.choice_.tried if "two per class" not in one.name]
    assert tried == list(same.choice_.tried)


def test_the_choice_depends_on_the_samples_only_and_is_kept_in_files(tmp_path):
    X, y = crossed()
    first = automatic().fit(X, y)
    order = np.random.default_rng(2).permutation(len(y))
    again = automatic().fit(X[order], y[order])
    assert_array_equal(first.prototypes_, again.prototypes_)
    twice = automatic().fit(np.concatenate([X, X]), np.concatenate([y, y]))
    weighted = automatic().fit(X, y, np.full(len(y), 2.0))
    assert_array_equal(twice.prototypes_, weighted.prototypes_)
    first.save(tmp_path / "model.npz")
    for other in (load_model(tmp_path / "model.npz"), pickle.loads(pickle.dumps(first))):
        assert other.choice_ == first.choice_
        assert other.prototypes_per_class == "auto"
        assert_array_equal(other.predict(X), first.predict(X))
    assert_array_equal(sklearn.clone(first).fit(X, y).prototypes_, first.prototypes_)


def test_it_composes_with_other_costs_and_with_what_wraps_an_estimator():
    X, y = crossed()
    assert len(automatic(cost=GLVQ(), sigma2=0.5).fit(X, y).prototypes_) == 4
    assert RejectOption(automatic(), coverage=0.9).fit(X, y).score(X, y) > 0.9
    X, y = crossed(38)
    domains = np.where(np.arange(len(y)) % 2, "a", "b")
    model = TransferClassifier(automatic(), target="a").fit(X, y, groups=domains)
    assert (model.predict(X) == y).mean() > 0.9


def test_streams_begin_with_one_and_continue_with_what_fit_chose():
    X, y = crossed()
    assert len(automatic().partial_fit(X, y).prototypes_) == 2
    model = automatic().fit(X, y)
    assert len(model.partial_fit(X[:20], y[:20]).prototypes_) == 4


def test_nothing_is_chosen_without_training_or_with_single_samples():
    X, y = crossed()
    assert len(automatic(max_epochs=0).fit(X, y).prototypes_) == 2
    few = np.concatenate([X[:30], expm(2 * np.eye(3))[None]])
    model = automatic().fit(few, np.concatenate([y[:30], [2]]))
    assert_array_equal(model.prototype_labels_, [0, 1, 2])


@attrs.frozen
class OnlyOne:
    """An initializer of a user's own, for one prototype per class."""

    per_class: tuple[int, ...] | None = None

    def __call__(self, manifold, codes, targets, n_classes, rng, sample_weight=None):
        if self.per_class is not None and max(self.per_class) > 1:
            raise ValueError("this initializer places one prototype per class")
        return ClassMeans(self.per_class)(manifold, codes, targets, n_classes, rng, sample_weight)


def test_an_initializer_that_refuses_two_is_heard():
    X, y = crossed(5)
    with pytest.raises(ValueError, match="places one prototype per class"):
        automatic(init=OnlyOne()).fit(X, y)


def test_what_cannot_be_chosen_says_so():
    X, y = crossed(5)
    with pytest.raises(ValueError, match="growth, which changes the number itself"):
        automatic(growth=[Grow()]).fit(X, y)
    given = RiemannianLVQ(init=(X[:2], [0, 1]), prototypes_per_class="auto")
    with pytest.raises(ValueError, match="leaves the number open"):
        given.fit(X, y)
    with pytest.raises(ValueError, match="prototypes_per_class"):
        RiemannianLVQ(prototypes_per_class="two").fit(X, y)
