"""Training from a Dask array: the local trainer's prototypes, whatever the partitions, workers and accidents."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask", reason='needs dask: pip install ".[dask]" in the folder of rplvq')
import dask.array as da

from rplvq import (
    AffineInvariant,
    BuresWasserstein,
    Checkpoint,
    Grow,
    HeldOut,
    LogCholesky,
    LogEuclidean,
    RiemannianLVQ,
    Share,
    compare,
    load_model,
)
from rplvq.costs import PLVQ
from rplvq.datasets import make_syn1
from rplvq.distributed import DistributedLVQ
from rplvq.exceptions import DivergenceWarning
from rplvq.initializers import ClassKMeans, ClassMeans
from rplvq.io import load_checkpoint
from rplvq.manifolds import riemannian_mean
from rplvq.schedules import Annealed
from rplvq.training import EpochScore

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def data(n=6, per_class=25):
    X, y = make_syn1(n_per_class=per_class, n=n, random_state=0)
    order = np.random.default_rng(1).permutation(len(X))
    return X[order], np.array(["a", "b", "c", "d"])[y[order]]


def cut(X, sizes):
    return da.from_array(X, chunks=(sizes, *X.shape[1:]))


def relative(a, b):
    return np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max()


@pytest.mark.parametrize("manifold", ["affine_invariant", "log_euclidean", "euclidean"])
@pytest.mark.parametrize("sizes", [100, 30, (1, 2, 97), (50, 50)])
def test_full_batches_give_the_prototypes_of_the_estimator(manifold, sizes):
    X, y = data()
    model = RiemannianLVQ(
        manifold,
        sigma2=HeldOut(["auto"]),
        batch_size=None,
        max_epochs=5,
        step_size=0.2,
        callbacks=[EpochScore()],
        random_state=3,
    )
    found, wanted = DistributedLVQ(model).fit(cut(X, sizes), y), model.fit(X, y)
    assert relative(found.prototypes_, wanted.prototypes_) < 1e-10
    assert found.sigma2_ == pytest.approx(wanted.sigma2_, rel=1e-10)
    for name in ("cost", "training_error", "sigma2", "step_size", "n_capped"):
        np.testing.assert_allclose(found.history_[name], wanted.history_[name], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.predict(cut(X, sizes)).compute(), wanted.predict(X))


@pytest.fixture
def small_parts(monkeypatch):
    """So that 100 samples are several parts."""
    monkeypatch.setattr("rplvq.distributed._estimator.FEWEST", 20)
    monkeypatch.setattr("rplvq.distributed._estimator.FEWEST_EACH", 5)


class BareSphere(LogEuclidean):
    """A metric without ``pull`` and ``exp``."""

    pull = exp = property()


MEANS, K_MEANS = ClassMeans((2, 2, 2, 2)), ClassKMeans((1, 2, 3, 2))
COUNTS = dict(zip("abcd", (1, 2, 3, 2), strict=True))


def assert_same_fit(found, wanted):
    """Bit for bit, but for the seconds."""
    np.testing.assert_array_equal(found.prototypes_, wanted.prototypes_)
    assert found.sigma2_ == wanted.sigma2_
    assert found.choice_ == wanted.choice_
    assert list(found.history_) == list(wanted.history_)
    for name in set(found.history_) - {"seconds"}:
        np.testing.assert_array_equal(found.history_[name], wanted.history_[name])


@pytest.mark.parametrize("manifold", [AffineInvariant(), LogEuclidean(), LogCholesky(), BuresWasserstein(), "tangent"])
@pytest.mark.parametrize(
    "settings",
    [
        {"sigma2": "auto"},
        {"sigma2": Annealed(1.5), "step_size": 2.0, "batch_size": 16, "init": K_MEANS, "cost": PLVQ()},
        {"sigma2": HeldOut(["auto"]), "init": MEANS, "prototypes_per_class": 2, "class_weight": "balanced"},
    ],
)
def test_what_fits_into_one_part_is_the_fit_of_one_process(manifold, settings):
    X, y = data()
    if "class_weight" in settings:
        X, y = X[y < "c"], y[y < "c"]
        X, y, settings = X[7:], y[7:], settings | {"init": ClassMeans((2, 2))}
    model = RiemannianLVQ(manifold, **settings, max_epochs=3, random_state=4)
    found, wanted = DistributedLVQ(model).fit(cut(X, 11), y), clone(model).fit(X, y)
    if manifold == "tangent":  # its reference is asked for the codes part by part
        np.testing.assert_allclose(found.prototypes_, wanted.prototypes_, rtol=1e-9)
    else:
        assert_same_fit(found, wanted)


def test_caps_are_those_of_the_whole_batch():
    X, y = data()
    manifold = AffineInvariant(max_step_length=0.05)
    model = RiemannianLVQ(manifold, batch_size=None, max_epochs=3, step_size=50.0, sigma2=0.5, random_state=0)
    with pytest.warns(DivergenceWarning, match=r"of 400 steps of epoch 1 were cut"):
        found = DistributedLVQ(model).fit(cut(X, 20), y)
    with pytest.warns(DivergenceWarning, match=r"of 400 steps of epoch 1 were cut"):
        wanted = model.fit(X, y)
    assert wanted.history_["n_capped"].min() > 4
    np.testing.assert_array_equal(found.history_["n_capped"], wanted.history_["n_capped"])
    assert relative(found.prototypes_, wanted.prototypes_) < 1e-10


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("rule", ["auto", HeldOut([0.2, 0.5, "untrained"])], ids=repr)
def test_the_trials_run_in_this_process_and_choose_what_they_choose_for_the_estimator(batch_size, rule):
    """All samples are few enough to be collected. No weight of the default step is cut, in the first epoch or later."""
    X, y = data()
    model = RiemannianLVQ("log_euclidean", sigma2=rule, batch_size=batch_size, max_epochs=24, random_state=0)
    found = DistributedLVQ(model).fit(cut(X, 30), y)
    choice = found.choice_
    names = ["auto", "discriminant", "untrained"] if rule == "auto" else ["0.2", "0.5", "untrained"]
    assert [one.name for one in choice.tried] == names
    assert choice.chosen == names[choice.winner]
    assert (found.n_epochs_ > 0) == choice.trains
    assert (found.history_["n_capped"] == 0).all()
    assert found.history_["epoch"].tolist() == ([*range(1, 1 + found.n_epochs_)] or [0])
    assert found.step_size_ == pytest.approx(found.estimator_.state_.step_schedule(0, 24))
    assert found.sigma2_ == found.estimator_.state_.sigma2 * choice.calibration
    assert found.estimator_.choice_ == choice
    if batch_size is None:  # the batches of one process are the same, so that the trials are, up to rounding
        wanted = clone(model).fit(X, y).choice_
        assert (choice.chosen, [one.n_folds for one in choice.tried]) == (
            wanted.chosen,
            [one.n_folds for one in wanted.tried],
        )
        np.testing.assert_allclose([one.loss for one in choice.tried], [one.loss for one in wanted.tried], atol=1e-9)


def test_a_number_for_sigma2_runs_no_trials_and_its_default_step_is_that_of_full_batches():
    X, y = data()
    model = RiemannianLVQ(sigma2=0.5, batch_size=None, max_epochs=3, random_state=0)
    found, wanted = DistributedLVQ(model).fit(cut(X, 30), y), clone(model).fit(X, y)
    assert found.choice_ is wanted.choice_ is None
    assert found.sigma2_ == 0.5
    # The first share would be 1 / T = 1 / 3, but 100 samples move each of 4 prototypes at most to their mean.
    assert found.step_size_ == wanted.step_size_ == pytest.approx(100 * min(1 / 3, 4 / 100) * 0.5)
    assert (found.history_["n_capped"] == 0).all()


def test_the_step_is_that_of_all_samples_where_only_a_part_of_them_is_collected(monkeypatch):
    """Full batches have 100 samples, although only 60 are collected. The share 0.01 is below the limit 4 / 100."""
    monkeypatch.setattr("rplvq.distributed._estimator.SAMPLE", 60)
    X, y = data()
    settings = {"sigma2": 0.5, "step_size": Share(0.01), "max_epochs": 2, "random_state": 0}
    for batch_size, n_samples in ((16, 16), (None, 100)):
        model = RiemannianLVQ("log_euclidean", batch_size=batch_size, **settings)
        assert DistributedLVQ(model).fit(cut(X, 30), y).step_size_ == pytest.approx(n_samples * 0.01 * 0.5)


def test_soft_labels_and_complex_matrices():
    X, y = data()
    phase = np.exp(1j * np.random.default_rng(0).uniform(0, 6, X.shape[-1]))
    X = phase[:, None] * X * phase.conj()
    soft = np.full((len(y), 4), 0.05) + 0.8 * (np.unique(y) == y[:, None])
    model = RiemannianLVQ(cost="plvq", sigma2=1.0, batch_size=None, max_epochs=3, random_state=0)
    found, wanted = DistributedLVQ(model).fit(cut(X, 40), cut(soft, 10)), model.fit(X, soft)
    assert relative(found.prototypes_, wanted.prototypes_) < 1e-10
    assert found.prototypes_.dtype == complex


def test_the_mean_is_that_of_one_place():
    X, y = data()
    for manifold in (AffineInvariant(), LogEuclidean()):
        found = DistributedLVQ(RiemannianLVQ(manifold, sigma2=1.0, batch_size=None, max_epochs=0)).fit(
            cut(X, (3, 60, 37)), y
        )
        members = [manifold.encode(X[y == label]) for label in found.prototype_labels_]
        wanted = manifold.decode(np.stack([riemannian_mean(manifold, codes).code for codes in members]))
        assert relative(found.prototypes_, wanted) < 1e-9


def test_predictions_are_lazy_and_right():
    X, y = data()
    model = DistributedLVQ(RiemannianLVQ(sigma2=HeldOut(["auto"]), batch_size=None, max_epochs=2, random_state=0)).fit(
        cut(X, 30), y
    )
    inner, lazy = model.estimator_, cut(X, 40)
    for method, shape in (("predict", (100,)), ("predict_proba", (100, 4)), ("transform", (100, 4))):
        found = getattr(model, method)(lazy)
        assert isinstance(found, da.Array)
        assert found.shape == shape
        np.testing.assert_array_equal(found.compute(), getattr(inner, method)(X))
    assert model.score(lazy, y) == inner.score(X, y)


def test_the_fitted_model_is_an_ordinary_one(tmp_path):
    X, y = data()
    model = DistributedLVQ(RiemannianLVQ(sigma2=HeldOut(["auto"]), batch_size=None, max_epochs=2, random_state=0)).fit(
        cut(X, 30), y
    )
    model.estimator_.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "model.npz").predict(X), model.estimator_.predict(X))


def test_without_persisting_the_result_is_the_same():
    X, y = data()
    model = RiemannianLVQ(sigma2=HeldOut(["auto"]), batch_size=None, max_epochs=2, random_state=0)
    kept, read = (DistributedLVQ(model, persist=persist).fit(cut(X, 30), y) for persist in (True, False))
    np.testing.assert_array_equal(kept.prototypes_, read.prototypes_)


def bad(index, value):
    X, y = data()
    X = X.copy()
    X[index] = value
    return X, y


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: bad(77, np.nan), r"X\[77\] contains NaN"),
        (lambda: bad(31, -np.eye(6)), r"X\[31\] is not positive definite"),
        (lambda: (data()[0], data()[1][:-1]), "y has 99 labels for 100 samples"),
        (lambda: (data()[0], np.zeros(100)), "only one class"),
        (lambda: (data()[0], np.where(np.arange(100) == 63, np.nan, 1.0)), r"y\[63\] is nan"),
    ],
)
def test_bad_input_is_named_by_its_index_in_the_whole_array(change, message):
    X, y = change()
    model = DistributedLVQ(RiemannianLVQ(sigma2=1.0, batch_size=None, max_epochs=1))
    with pytest.raises(ValueError, match=message):
        model.fit(cut(X, 30), y)
    assert not hasattr(model, "estimator_")


def test_what_has_no_distributed_version_is_refused():
    X, y = data()
    for model, message in (
        (RiemannianLVQ(growth=[Grow()]), "growth=.* is not supported by DistributedLVQ"),
        (RiemannianLVQ(step_size="adaptive"), "step_size=.* is not supported by DistributedLVQ"),
        (RiemannianLVQ(BareSphere()), "has no pull and exp"),
        (RiemannianLVQ("learned_log_euclidean", batch_size=None), "has no pull and exp"),
        (RiemannianLVQ(prototypes_per_class=26), r"class 'a' has 25 sample\(s\) .*fewer than its 26 prototype"),
    ):
        with pytest.raises(ValueError, match=message):
            DistributedLVQ(model).fit(cut(X, 30), y)


def test_given_prototypes_are_taken():
    X, y = data()
    model = RiemannianLVQ(batch_size=None, max_epochs=0, init=(X[:4], ["a", "b", "c", "d"]))
    np.testing.assert_allclose(DistributedLVQ(model).fit(cut(X, 30), y).prototypes_, X[:4], rtol=1e-12)


def test_callbacks_are_called_and_can_stop():
    X, y = data()
    seen = []
    model = RiemannianLVQ(
        sigma2=1.0, batch_size=None, max_epochs=9, callbacks=[lambda report: seen.append(report.row) or len(seen) == 2]
    )
    assert DistributedLVQ(model).fit(cut(X, 30), y).n_epochs_ == 2
    assert seen[1]["epoch"] == 2


class LightningError(Exception):
    """Ends a fit between two epochs, as a fault of the machine would."""


def broken_off(path, size=30, seed=0, callbacks=(), **settings):
    """A distributed fit that wrote a checkpoint after epoch 3 and broke off after epoch 4; and the samples."""

    def strike(report):
        if report.state.epoch == 4:
            raise LightningError

    X, y = data()
    settings = {"sigma2": HeldOut(["auto"]), "batch_size": 16, "max_epochs": 6, "random_state": seed} | settings
    model = RiemannianLVQ(**settings, callbacks=[*callbacks, Checkpoint(path, every=3), strike])
    with pytest.raises(LightningError):
        DistributedLVQ(model).fit(cut(X, size), y)
    return model.set_params(callbacks=callbacks), cut(X, size), y


@pytest.mark.parametrize(
    "settings", [{}, {"batch_size": None}, {"callbacks": [EpochScore()]}, {"metric": "log_euclidean", "init": "kmeans"}]
)
def test_a_fit_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path, settings):
    model, X, y = broken_off(tmp_path / "fit.npz", **settings)
    assert load_checkpoint(tmp_path / "fit.npz").progress.state.epoch == 3
    found, wanted = DistributedLVQ(model).fit(X, y, resume=tmp_path / "fit.npz"), DistributedLVQ(model).fit(X, y)
    np.testing.assert_array_equal(found.prototypes_, wanted.prototypes_)
    for name in ("epoch", "cost", "training_error", "step_size", "n_capped"):
        np.testing.assert_array_equal(found.history_[name], wanted.history_[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model, X, y: (model.set_params(sigma2=3.0), X, y), "a fit with sigma2="),
        (lambda model, X, y: (model.set_params(random_state=1), X, y), "another random_state"),
        (lambda model, X, y: (model, 2.0 * X, y), "other samples, labels or weights"),
        (lambda model, X, y: (model, X.rechunk((31, -1, -1)), y), "other samples, labels or weights"),
        (lambda model, X, y: (model, X, y[::-1]), "other samples, labels or weights"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, change, message, small_parts):
    model, X, y = change(*broken_off(tmp_path / "fit.npz"))
    lvq = DistributedLVQ(model)
    with pytest.raises(ValueError, match=message):
        lvq.fit(X, y, resume=tmp_path / "fit.npz")
    assert not hasattr(lvq, "estimator_")


@contextmanager
def two_workers():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", host="127.0.0.1"
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as client:
        yield client


@pytest.mark.parametrize("batch_size", [1, None])
def test_two_processes_give_the_prototypes_of_one(cluster, batch_size, small_parts):
    X, y = data()
    model = RiemannianLVQ(sigma2=HeldOut(["auto"]), batch_size=batch_size, max_epochs=2, random_state=0)
    here = DistributedLVQ(model, rounds=2)
    with dask.config.set(scheduler="synchronous"):
        here.fit(cut(X, 30), y)
    assert_same_fit(DistributedLVQ(model, rounds=2).fit(cut(X, 30), y), here)
    assert_same_fit(clone(here).fit(X, y), DistributedLVQ(model, rounds=2).fit(X, y))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is of the GNU library")
def test_workers_reuse_freed_memory():
    """With the setting with which Dask starts workers, each new array is mapped page by page."""
    code = """if True:
        import resource
        import numpy as np
        from rplvq.distributed._partitions import _reuse_memory
        def faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(100):
                np.ones(2**17)
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        before = faults()
        _reuse_memory()
        print(before, faults())
    """
    settings = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    settings.pop("MALLOC_MMAP_THRESHOLD_", None)
    printed = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
    before, after = map(int, printed.stdout.split())
    assert after < before / 10


def faked_versions(versions):
    """On a worker, answer for some packages with other versions; None for a package that is missing."""

    def version(name, given=importlib.metadata.version):
        if versions.get(name, "") is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions.get(name) or given(name)

    importlib.metadata.version = version


@pytest.mark.parametrize(
    ("name", "version", "there"),
    [("numpy", "1.0", "1.0"), ("rplvq", "0.0.1", "0.0.1"), ("dask", None, "(not installed)")],
)
def test_a_worker_with_another_version_is_named_before_anything_is_computed(cluster, name, version, there, monkeypatch):
    monkeypatch.setattr("rplvq.distributed._partitions.SAME", ("rplvq", "numpy", "dask"))  # numba may be missing
    worker = sorted(cluster.scheduler_info()["workers"])[1]
    X, y = data()
    spoiled = cut(X, 30).map_blocks(lambda block: block * np.nan)  # would be noticed if it were computed
    lvq = DistributedLVQ(RiemannianLVQ(max_epochs=0))
    own = importlib.metadata.version(name)
    cluster.run(faked_versions, {name: version}, workers=[worker])
    try:
        message = f"worker {worker} has {name} {there}, but this process has {name} {own}"
        with pytest.raises(RuntimeError, match=re.escape(message)):
            lvq.fit(spoiled, y)
    finally:
        cluster.run(importlib.reload, importlib.metadata, workers=[worker])
    assert not hasattr(lvq, "estimator_")
    lvq.fit(cut(X, 30), y)


def test_compare_runs_unchanged_under_dask(cluster):
    import joblib

    X, y = data(per_class=9)
    estimators = {"AI": RiemannianLVQ(max_epochs=8), "LE": RiemannianLVQ("log_euclidean", max_epochs=8)}
    wanted = compare(X, y, estimators, cv=3, random_state=0)
    with joblib.parallel_config("dask"):
        found = compare(X, y, estimators, cv=3, n_jobs=-1, random_state=0)
    np.testing.assert_array_equal(found.scores, wanted.scores)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, None])
def test_a_worker_killed_during_fit_changes_nothing(batch_size, small_parts):
    """In a cluster of its own: who works there next may wait for what the killed one held."""
    X, y = data()
    killed: list[int] = []

    def kill(report):
        if report.row["epoch"] == 2:
            (pid, *_) = client.run(os.getpid).values()
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    classes, first = np.unique(y, return_index=True)
    settings = {"sigma2": 1.0, "batch_size": batch_size, "max_epochs": 6, "random_state": 0}
    model = RiemannianLVQ(**settings, init=(X[first], classes))
    with dask.config.set(scheduler="synchronous"):
        wanted = DistributedLVQ(model).fit(cut(X, 10), y)
    with two_workers() as client:
        found = DistributedLVQ(clone(model).set_params(callbacks=[kill])).fit(cut(X, 10), y)
    assert len(killed) == 1
    np.testing.assert_array_equal(found.prototypes_, wanted.prototypes_)
    np.testing.assert_array_equal(found.history_["cost"], wanted.history_["cost"])


def test_trials_hold_out_whole_groups():
    """Views of objects: held-out views of objects that train say that training helps, other objects do not."""
    rng = np.random.default_rng(0)
    y, group = np.repeat([0, 1], 64), np.repeat(np.arange(16), 8)
    centers = rng.normal(size=(16, 10)) + np.where(np.arange(16) < 8, -1.0, 1.0)[:, None] * np.eye(10)[0]
    X = centers[group] + 0.3 * rng.normal(size=(128, 10))
    model = RiemannianLVQ("euclidean_vectors", batch_size=None, random_state=0)
    samples = da.from_array(X, chunks=(30, 10))
    plain, grouped = (DistributedLVQ(model).fit(samples, y, groups=own) for own in (None, da.from_array(group)))
    (trained, _), (trained_by_group, _) = plain.choice_.tried, grouped.choice_.tried
    assert (plain.choice_.trains, grouped.choice_.trains) == (True, False)
    assert trained_by_group.loss > 2 * trained.loss
    names = [f"object {one:02}" for one in group]
    assert DistributedLVQ(model).fit(samples, y, groups=names).choice_ == grouped.choice_
    with pytest.raises(ValueError, match=r"groups must have shape \(128,\)"):
        DistributedLVQ(model).fit(samples, y, groups=group[:5])


def test_missing_channels_are_filled_as_by_the_estimator():
    X, y = data()
    gaps = X.copy()
    gaps[::2, 1] = gaps[::2, :, 1] = np.nan
    settings = {"sigma2": 1.0, "max_epochs": 2, "random_state": 0}
    local = RiemannianLVQ(**settings).fit(X, y)
    model = DistributedLVQ(RiemannianLVQ(**settings)).fit(cut(X, 30), y)
    assert model.estimator_.missing_channels_ == local.missing_channels_
    np.testing.assert_array_equal(model.predict_proba(cut(gaps, 30)).compute(), local.predict_proba(gaps))
