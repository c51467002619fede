"""Local epochs that are averaged on the manifold: accuracy, bits, and whatever users pass."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask", reason='needs dask: pip install ".[dask]" in the folder of rplvq')
import dask.array as da

from rplvq import AffineInvariant, Checkpoint, EarlyStopping, HeldOut, LogEuclidean, Product, RiemannianLVQ
from rplvq.datasets import load_digits_covariances, make_syn1, make_syn2
from rplvq.distributed import DistributedLVQ
from rplvq.distributed._training import averaged
from rplvq.io import load_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
TRAINS = HeldOut(["auto"])


@pytest.fixture
def small_parts(monkeypatch):
    """So that a few hundred samples are several parts."""
    monkeypatch.setattr("rplvq.distributed._estimator.FEWEST", 60)
    monkeypatch.setattr("rplvq.distributed._estimator.FEWEST_EACH", 5)


def data(per_class=60, n=4):
    X, y = make_syn1(n_per_class=per_class, n=n, random_state=0)
    order = np.random.default_rng(1).permutation(len(X))
    return X[order], y[order]


def cut(values, size):
    return da.from_array(values, chunks=(size, *values.shape[1:]))


def model(**settings):
    return RiemannianLVQ(**({"sigma2": TRAINS, "max_epochs": 3, "random_state": 0} | settings))


def assert_same(found, wanted):
    np.testing.assert_array_equal(found.prototypes_, wanted.prototypes_)
    np.testing.assert_array_equal(found.history_["cost"], wanted.history_["cost"])


def test_the_mean_is_weighted_by_the_samples_of_the_class():
    """Prototype 0 is of class 0, which the second part has thrice as often; the first part lacks class 1."""
    manifold, labels, start = LogEuclidean(), np.array([0, 1]), np.zeros((2, 1, 1))
    ends = [np.array([[[1.0]], [[9.0]]]), np.array([[[5.0]], [[2.0]]])]
    by_class = np.array([[10.0, 0.0], [30.0, 40.0]])
    found = averaged(manifold, ends, by_class, labels, start, np.inf)
    np.testing.assert_allclose(found.ravel(), [4.0, 2.0])


def test_small_moves_are_added_up_and_large_ones_are_not():
    """20 visits in each of two parts, each 0.01 of the way: the factor is 2. With 0.04 of the way it is 1 / 0.8."""
    start, labels = np.zeros((1, 1, 1)), np.array([0])
    ends, by_class = [np.array([[[1.0]]]), np.array([[[3.0]]])], np.array([[20.0], [20.0]])
    for reach, factor in ((0.01, 2.0), (0.04, 1.25), (0.1, 1.0)):
        found = averaged(LogEuclidean(), ends, by_class, labels, start, reach)
        assert found.item() == pytest.approx(2.0 * factor)


def test_the_mean_is_that_of_the_manifold():
    ends = [np.array([np.diag([np.e**2, 1.0])]), np.array([np.eye(2)])]
    found = averaged(AffineInvariant(), ends, np.array([[5.0], [5.0]]), np.array([0]), np.array([np.eye(2)]), np.inf)
    np.testing.assert_allclose(found[0], np.diag([np.e, 1.0]), rtol=1e-6)


def many(name, real_data):
    if name == "digits":
        return load_digits_covariances()
    if name == "ETH-80":
        with np.load(real_data("eth80_cov5.npz")) as file:
            return file["full256"], file["y"]
    return make_syn2(30_000, n=4, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "ETH-80", "SynII"])
def test_sixteen_partitions_lose_hardly_anything_against_four(name, real_data):
    """With the parts and rounds of the default. What fits into one part loses nothing."""
    X, y = many(name, real_data)
    losses = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = np.split(order, [5 * len(X) // 6])
        lvq = DistributedLVQ(RiemannianLVQ(random_state=seed))
        with dask.config.set(scheduler="synchronous"):
            right = [
                lvq.fit(cut(X[train], -(-len(train) // count)), y[train]).score(X[test], y[test]) for count in (4, 16)
            ]
        losses.append(right[0] - right[1])
    assert np.max(losses) <= (0.003 if name == "SynII" else 0)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_parts_are_as_good_as_one_process(small_parts, batch_size):
    X, y = make_syn2(n_per_class=60, random_state=0)
    lvq = model(max_epochs=6, batch_size=batch_size)
    local = clone(lvq).fit(X, y)
    for rounds in (1, 3):
        found = DistributedLVQ(lvq, rounds=rounds).fit(X, y)
        assert abs(found.score(X, y) - local.score(X, y)) < 0.03
        assert found.n_epochs_ == 6
        assert not np.array_equal(found.prototypes_, local.prototypes_)


@pytest.mark.parametrize("batch_size", [1, None])
def test_the_order_of_partitions_changes_no_bit(small_parts, batch_size):
    X, y = data()
    lvq = DistributedLVQ(model(batch_size=batch_size), rounds=2)
    order = np.r_[180:240, 0:60, 120:180, 60:120]
    assert_same(clone(lvq).fit(cut(X[order], 60), y[order]), lvq.fit(cut(X, 60), y))


def test_threads_change_no_bit(small_parts):
    X, y = data()
    fits = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            fits.append(DistributedLVQ(model(), rounds=2).fit(cut(X, 60), y))
    assert_same(*fits)


def test_sorted_partitions_of_one_class_each_are_mixed(small_parts):
    X, y = data()
    order = np.argsort(y, kind="stable")
    lvq = model(max_epochs=10)
    found = DistributedLVQ(lvq).fit(cut(X[order], 60), y[order])
    assert len(np.unique(y[order][:60])) == 1
    assert found.score(X, y) > clone(lvq).fit(X, y).score(X, y) - 0.03


def test_what_dask_holds_is_the_same_as_what_this_process_holds(small_parts):
    X, y = data()
    names, weights = np.array(["a", "b", "c", "d"])[y], np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    groups = np.arange(len(y)) // 4
    lvq = DistributedLVQ(model(sigma2="auto"))
    here = clone(lvq).fit(cut(X, 60), names, weights, groups=groups)
    there = lvq.fit(cut(X, 60), cut(names, 50), cut(weights, 70), groups=cut(groups, 33))
    assert_same(there, here)
    assert there.classes_.tolist() == ["a", "b", "c", "d"]


def test_weights_count_copies_and_class_weights_multiply_them():
    X, y = data(20)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    lvq = DistributedLVQ(model())
    assert_same(clone(lvq).fit(cut(X, 30), y, weights), clone(lvq).fit(X[copies], y[copies]))
    by_label = DistributedLVQ(model(class_weight={1: 2.0})).fit(cut(X, 30), y)
    assert_same(by_label, clone(lvq).fit(X, y, np.where(y == 1, 2.0, 1.0)))


@pytest.mark.parametrize("metric", ["log_euclidean", "tangent", "learned_log_euclidean", "product"])
def test_other_metrics(small_parts, metric):
    X, y = data()
    if metric == "product":
        metric, X = Product([AffineInvariant(), LogEuclidean()]), np.stack([X, X[:, ::-1, ::-1]], axis=1)
    lvq = RiemannianLVQ(metric, sigma2=TRAINS, max_epochs=5, random_state=0)
    found, local = DistributedLVQ(lvq).fit(cut(X, 60), y), clone(lvq).fit(X, y)
    assert found.estimator_.score(X, y) > local.score(X, y) - 0.03
    if metric == "learned_log_euclidean":
        manifold = found.estimator_.trainer_.manifold
        states = found.estimator_.state_, local.state_
        learned, wanted = ((manifold.metric(one.prototypes) - np.eye(10)).ravel() for one in states)
        assert learned @ wanted > 0.5 * np.linalg.norm(learned) * np.linalg.norm(wanted)


def test_complex_matrices_and_soft_labels(small_parts):
    X, y = data()
    phase = np.exp(1j * np.random.default_rng(0).uniform(0, 6, X.shape[-1]))
    X, soft = phase[:, None] * X * phase.conj(), np.full((len(y), 4), 0.05) + 0.8 * np.eye(4)[y]
    found = DistributedLVQ(model(cost="plvq", sigma2=1.0)).fit(cut(X, 60), cut(soft, 50))
    assert found.prototypes_.dtype == complex
    assert found.score(X, y) > 0.8


@pytest.mark.filterwarnings("ignore::rplvq.exceptions.DivergenceWarning")  # its steps are long
@pytest.mark.parametrize("grouped", [False, True])
def test_early_stopping_holds_samples_of_every_part_out(small_parts, grouped):
    X, y = data()
    lvq = model(early_stopping=EarlyStopping(fraction=0.2, patience=2), max_epochs=20, step_size=1.0)
    groups = np.arange(len(y)) // 8 if grouped else None
    found = DistributedLVQ(lvq).fit(cut(X, 60), y, groups=groups)
    costs = found.history_["validation_cost"]
    assert np.isfinite(costs).all()
    assert found.n_epochs_ < 20
    wanted = np.argmin(costs) + 1
    assert found.estimator_.state_.epoch in (0, wanted)


def test_a_fit_of_several_parts_goes_on_from_a_checkpoint(small_parts, tmp_path):
    X, y = data()
    path, lvq = tmp_path / "fit.npz", model(max_epochs=6)
    wanted = DistributedLVQ(lvq, rounds=2).fit(cut(X, 60), y)

    def stop(report):
        if report.epoch == 4:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        DistributedLVQ(clone(lvq).set_params(callbacks=[Checkpoint(path, every=3), stop]), rounds=2).fit(cut(X, 60), y)
    assert load_checkpoint(path).progress.state.epoch == 3
    assert_same(DistributedLVQ(lvq, rounds=2).fit(cut(X, 60), y, resume=path), wanted)


@pytest.mark.parametrize("count", [40, 3])
def test_class_means_of_more_samples_than_are_collected(monkeypatch, small_parts, count):
    """Three samples cannot have all four classes."""
    X, y = data()
    wanted = RiemannianLVQ("log_euclidean", max_epochs=0).fit(X, y)
    monkeypatch.setattr("rplvq.distributed._estimator.SAMPLE", count)
    found = DistributedLVQ(RiemannianLVQ("log_euclidean", max_epochs=0)).fit(cut(X, 60), y)
    np.testing.assert_allclose(found.prototypes_, wanted.prototypes_, rtol=1e-9)
    trained = DistributedLVQ(model()).fit(cut(X, 60), y)
    assert trained.score(X, y) > 0.85


def test_a_parameter_of_the_classifier_is_told_its_place():
    with pytest.raises(TypeError, match=r"write DistributedLVQ\(RiemannianLVQ\(max_epochs=20\)\)"):
        DistributedLVQ(max_epochs=20)
    with pytest.raises(TypeError, match=r"has no parameter 'round'$"):
        DistributedLVQ(round=2)
    assert clone(DistributedLVQ(rounds=3)).get_params(deep=False) == {"estimator": None, "persist": True, "rounds": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.nan}, r"X\[150\] contains NaN.*\(in partition 7, which begins at index 140\)"),
        ({"y": np.nan}, r"y\[150\] is nan.*\(in partition 7, which begins at index 140\)"),
        ({"sample_weight": -1.0}, r"sample_weight\[150\] is -1.*\(in partition 7, which begins at index 140\)"),
    ],
    ids=["sample", "label", "weight"],
)
def test_bad_values_are_named_with_their_partition(change, message):
    X, y = data()
    given = {"X": X, "y": y.astype(float), "sample_weight": np.ones(len(y))}
    (name, value), *_ = change.items()
    given[name][150] = value
    lvq = DistributedLVQ(model())
    with pytest.raises(ValueError, match=message):
        lvq.fit(**{key: cut(values, 20) for key, values in given.items()})
    assert not hasattr(lvq, "estimator_")


def test_partitions_of_unknown_size_are_refused():
    X, y = cut(data()[0], 60), cut(data()[1], 60)
    for given, name in (((X[y > 0], y), "X"), ((X, y[y >= 0]), "y")):
        with pytest.raises(
            ValueError, match=rf"{name} has partitions of unknown size: call {name}.compute_chunk_sizes"
        ):
            DistributedLVQ(model()).fit(*given)


def test_whatever_weighs_nothing_is_refused():
    X, y = data()
    for weights in (np.zeros(len(y)), cut(np.zeros(len(y)), 60)):
        with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
            DistributedLVQ(model()).fit(cut(X, 60), y, weights)
    with pytest.raises(ValueError, match=r"class 2 has 0 sample\(s\) of positive weight"):
        DistributedLVQ(model()).fit(cut(X, 60), y, np.where(y == 2, 0.0, 1.0))
