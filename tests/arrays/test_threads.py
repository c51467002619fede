"""Small matrices run on one BLAS thread, and the setting of the user comes back, however calls overlap or end."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from rplvq import AffineInvariant, Recenter, RiemannianLVQ, SPDProjection, Trainer, compare
from rplvq.arrays import Samples, _linalg, single_blas_thread
from rplvq.costs import RSLVQ
from rplvq.datasets import make_syn1
from rplvq.features import region_covariances, trial_covariances
from rplvq.manifolds import riemannian_mean

X, Y = make_syn1(n_per_class=6, random_state=0)


LIBRARIES = ThreadpoolController().select(user_api="blas").lib_controllers


def counts() -> set[int]:
    return {library.get_num_threads() for library in LIBRARIES}


@pytest.fixture(autouse=True)
def _three_threads():
    before = [library.get_num_threads() for library in LIBRARIES]
    for library in LIBRARIES:
        _linalg.set_threads(library, 3)
    SEEN.clear()
    yield
    for library, count in zip(LIBRARIES, before, strict=True):
        _linalg.set_threads(library, count)


SEEN: list[set[int]] = []
"""The numbers of threads at every call of a watching part; a list of the module, because parts are copied."""


class Watching(AffineInvariant):
    def encode(self, points):
        SEEN.append(counts())
        return super().encode(points)

    def connect(self, prototypes, samples):
        SEEN.append(counts())
        return super().connect(prototypes, samples)

    def sqdist(self, prototypes, samples):
        SEEN.append(counts())
        return super().sqdist(prototypes, samples)


class WatchingCost(RSLVQ):
    def __call__(self, sqdist, targets, labels, sigma2):
        SEEN.append(counts())
        return super().__call__(sqdist, targets, labels, sigma2)


def watch(report):
    SEEN.append(counts())


def assert_on_one(seen):
    assert seen
    assert all(found == {1} for found in seen)
    assert counts() == {3}


def test_fit_and_partial_fit():
    RiemannianLVQ(Watching(), sigma2=1.0, max_epochs=2, callbacks=[watch]).fit(X, Y)
    assert_on_one(SEEN)
    SEEN.clear()
    RiemannianLVQ(Watching(), sigma2=1.0).partial_fit(X, Y)
    assert_on_one(SEEN)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform"])
@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_predictions(method, image, n_jobs):
    model = RiemannianLVQ(Watching(), decision="posterior", max_epochs=0, n_jobs=n_jobs).fit(X, Y)
    SEEN.clear()
    getattr(model, method)(X.reshape(4, 6, 10, 10) if image else X)
    assert_on_one(SEEN)


def test_trainer():
    samples, rng = Samples(X, Y), np.random.default_rng(0)
    trainer = Trainer(Watching(), sigma2=1.0, max_epochs=1)
    state = trainer.init(samples, 4, rng)
    assert_on_one(SEEN)
    calls = [
        lambda: trainer.run(state, samples, rng),
        lambda: trainer.sweep(state, samples, rng),
        lambda: trainer.step(state, samples),
        lambda: list(trainer.epochs(trainer.begin(state, rng), samples, rng)),
    ]
    for call in calls:
        SEEN.clear()
        call()
        assert_on_one(SEEN)


def test_epochs_do_not_keep_the_limit_between_epochs():
    samples, rng = Samples(X, Y), np.random.default_rng(0)
    trainer = Trainer(AffineInvariant(), sigma2=1.0, max_epochs=2)
    state = trainer.init(samples, 4, rng)
    assert [counts() for _ in trainer.epochs(trainer.begin(state, rng), samples, rng)] == [{3}, {3}]


def test_means():
    riemannian_mean(Watching(), X)
    assert_on_one(SEEN)


def test_projection():
    SPDProjection(2, cost=WatchingCost(), max_iter=2).fit(X, Y)
    assert_on_one(SEEN)


@pytest.fixture
def products(monkeypatch):
    """The numbers of threads at every decomposition and every covariance."""
    seen = []

    def watched(function):
        def call(*args, **kwargs):
            seen.append(counts())
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(np.linalg, "eigh", watched(np.linalg.eigh))
    monkeypatch.setattr("rplvq.features._covariances.adjoint", watched(np.conj))
    return seen


def test_transformers(products):
    recenter = Recenter(online=True).fit(X, groups=np.zeros(len(X)))
    recenter.transform(X, groups=np.ones(len(X)))
    recenter.partial_fit(X, groups=np.full(len(X), 2.0))
    SPDProjection(2, max_iter=1).fit(X, Y).transform(X)
    assert_on_one(products)


def test_covariances(products):
    rng = np.random.default_rng(0)
    square = rng.standard_normal((2, 4, 4))
    trial_covariances(square)
    region_covariances(rng.standard_normal((2, 8, 8)), lambda image: np.stack([image] * 64, axis=-1))
    assert_on_one(products)


def test_compare_limits_any_estimator():
    model = RiemannianLVQ(max_epochs=1, sigma2=1.0, callbacks=[watch])
    compare(X, Y, [model], cv=2, random_state=0)
    assert_on_one(SEEN)


def test_distributed_tasks():
    da = pytest.importorskip("dask.array")
    from rplvq.distributed import DistributedLVQ

    samples = da.from_array(X, chunks=(12, 10, 10))
    model = DistributedLVQ(RiemannianLVQ(Watching(), batch_size=None, max_epochs=1)).fit(samples, Y)
    model.predict(samples).compute()
    assert_on_one(SEEN)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_exception_restores(error):
    with pytest.raises(error), single_blas_thread():
        raise error
    assert counts() == {3}


def test_an_interrupted_fit_restores():
    def interrupt(report):
        raise KeyboardInterrupt

    with pytest.warns(match="interrupted"):
        RiemannianLVQ(max_epochs=2, sigma2=1.0, callbacks=[interrupt]).fit(X, Y)
    assert counts() == {3}


def test_nested():
    with single_blas_thread():
        with single_blas_thread():
            assert counts() == {1}
        assert counts() == {1}
    assert counts() == {3}


def test_what_a_user_sets_inside_is_kept():
    with single_blas_thread():
        with threadpool_limits(2, user_api="blas"):
            with single_blas_thread():
                assert counts() == {2}
            assert counts() == {2}
        assert counts() == {1}
    assert counts() == {3}


def test_large_matrices_keep_their_threads():
    with single_blas_thread(_linalg.LARGEST_ON_ONE_THREAD):
        assert counts() == {1}
    with single_blas_thread(_linalg.LARGEST_ON_ONE_THREAD + 1):
        assert counts() == {3}


@pytest.mark.parametrize("first_out", [0, 1])
def test_overlapping_threads(first_out):
    """Two calls overlap: the first of them to end leaves the limit to the other one, whichever came first."""
    leave, inside, done = ([threading.Event(), threading.Event()] for _ in range(3))
    seen = []

    def call(which):
        with single_blas_thread():
            seen.append(counts())
            inside[which].set()
            leave[which].wait(60)
        done[which].set()

    threads = [threading.Thread(target=call, args=(which,)) for which in range(2)]
    for which in range(2):
        threads[which].start()
        assert inside[which].wait(60)
    for which in (first_out, 1 - first_out):
        seen.append(counts())
        leave[which].set()
        assert done[which].wait(60)
    for thread in threads:
        thread.join()
    assert_on_one(seen)


def test_many_fits_in_threads():
    def fits():
        for _ in range(5):
            RiemannianLVQ(max_epochs=1, sigma2=1.0, callbacks=[watch]).fit(X, Y)

    threads = [threading.Thread(target=fits) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(SEEN) == 20
    assert_on_one(SEEN)


class Library:
    """A library of linear algebra that counts threads for each calling thread, as MKL does."""

    filepath, check_symbols = "one", ("MKL_Set_Num_Threads_Local",)

    def __init__(self):
        self.local = threading.local()

    def get_num_threads(self):
        return getattr(self.local, "count", 3)

    def set_num_threads(self, count):
        self.local.count = count


def test_libraries_that_count_by_thread(monkeypatch):
    library, seen = Library(), []
    monkeypatch.setattr(_linalg._Calls, "libraries", lambda self: [library])

    def other():
        with single_blas_thread():
            seen.append(library.get_num_threads())
        seen.append(library.get_num_threads())

    with single_blas_thread():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        seen.append(library.get_num_threads())
    assert [*seen, library.get_num_threads()] == [1, 3, 1, 3]


def test_a_library_that_is_loaded_later_is_limited(monkeypatch):
    class Later(Library):
        filepath, check_symbols = "later", ()

    later, loaded = Later(), []
    monkeypatch.setattr(_linalg._Calls, "libraries", lambda self: loaded)
    with single_blas_thread():
        loaded.append(later)
        with single_blas_thread():
            assert later.get_num_threads() == 1
    assert later.get_num_threads() == 3


def test_libraries_are_searched_for_only_after_imports(monkeypatch):
    searched, real = [], _linalg.ThreadpoolController
    monkeypatch.setattr(_linalg, "ThreadpoolController", lambda: searched.append(1) or real())
    calls = _linalg._Calls()
    calls.libraries()
    calls.libraries()
    assert len(searched) == 1
    monkeypatch.setitem(_linalg.sys.modules, "a_new_module", threading)
    assert {library.user_api for library in calls.libraries()} == {"blas"}
    assert len(searched) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_not_held_by_threads_that_it_does_not_have():
    calls = _linalg._Calls()
    calls.inside = {"other": -1, "mine": threading.get_ident()}
    thread = threading.Thread(target=calls.lock.acquire)
    thread.start()
    thread.join()
    calls.after_fork()
    assert list(calls.inside) == ["mine"]
    assert calls.lock.acquire(blocking=False)
