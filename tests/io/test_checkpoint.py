"""Checkpoints: a fit that goes on from one ends at the same bits, and is refused where it could not."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import os
import pathlib
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from pymanopt.manifolds import Sphere

from rplvq import (
    AdaptiveStep,
    AffineInvariant,
    Annealed,
    Checkpoint,
    ClassKMeans,
    EarlyStopping,
    EuclideanVectors,
    GeometricDecay,
    Grow,
    HeldOut,
    LogEuclidean,
    Product,
    Prune,
    RiemannianLVQ,
    StepSize,
    TangentSpace,
    Trainer,
)
from rplvq.arrays import Samples
from rplvq.exceptions import ModelFileError
from rplvq.io import _checkpoint as checkpoint_module
from rplvq.io import load_checkpoint, load_model
from rplvq.io._archive import CHECKPOINT, open_archive, seal_archive
from rplvq.schedules import DoGState
from rplvq.training import EpochScore
from tests.problems import changed, refuse, spd_classes, sphere_classes, vector_classes

X, Y = spd_classes(per_class=10)
SETTINGS = {"sigma2": HeldOut(["auto"]), "max_epochs": 6, "random_state": 0}
WEIGHTS = np.random.default_rng(0).uniform(0, 2.5, len(Y))


class LightningError(Exception):
    """Ends a fit between two epochs, as a fault of the machine would."""


def strike(epoch):
    def callback(report):
        if report.state.epoch == epoch:
            raise LightningError

    return callback


def squares(report):
    return {"square": float(report.state.epoch**2)}


def on_even_epochs(report):
    return {"even": 1.0} if report.state.epoch % 2 == 0 else None


PAIR = Product([AffineInvariant(), LogEuclidean()], relevances="learned")
RUNS = {
    "defaults": ({}, (X, Y)),
    "plain": ({"metric": AffineInvariant(compiled=False)}, (X, Y)),
    "batches": ({"batch_size": 4}, (X, Y)),
    "all at once": ({"batch_size": None}, (X, Y)),
    "complex": ({}, spd_classes(dtype=complex)),
    "Log-Euclidean": ({"metric": LogEuclidean()}, (X, Y)),
    "log-Cholesky": ({"metric": "log_cholesky"}, (X, Y)),
    "tangent": ({"metric": "tangent"}, (X, Y)),
    "tangent, whitened": (
        {"metric": TangentSpace(whiten=True), "early_stopping": EarlyStopping(fraction=0.3, patience=2)},
        spd_classes(dtype=complex),
    ),
    "Bures-Wasserstein": ({"metric": "bures_wasserstein"}, (X, Y)),
    "learned Log-Euclidean": ({"metric": "learned_log_euclidean"}, (X, Y)),
    "product, learned": ({"metric": PAIR, "sigma2": 1.0}, (np.stack([X, X[::-1]], axis=1), Y)),
    "product, local": (
        {"metric": attrs.evolve(PAIR, relevances="local"), "sigma2": 1.0},
        (np.stack([X, X[::-1]], axis=1), Y),
    ),
    "projected": ({"metric": "euclidean", "step_size": 0.1}, (X, Y)),
    "vectors": ({"metric": "euclidean_vectors"}, vector_classes()),
    "sphere": ({"metric": Sphere(3)}, sphere_classes()),
    "weights": ({}, (X, Y, WEIGHTS)),
    "soft labels": ({"cost": "plvq"}, (X, 0.8 * np.eye(2)[Y] + 0.1)),
    "strings": ({}, (X, np.array(["no", "yes"])[Y])),
    "annealed, k-means": ({"sigma2": Annealed(), "init": ClassKMeans(), "prototypes_per_class": 2}, (X, Y)),
    "given prototypes": ({"init": (X[:4], [0, 1, 0, 1])}, (X, Y)),
    "score of each epoch": ({"callbacks": [EpochScore()]}, (X, Y)),
    "early stopping": ({"early_stopping": EarlyStopping(fraction=0.3, patience=2)}, (X, Y)),
    "held out": ({"sigma2": HeldOut(("auto", "half_median"))}, spd_classes(per_class=30)),
    "early stopping by default": ({"early_stopping": True}, (np.repeat(X, 2, axis=0), np.repeat(Y, 2))),
    "capped steps": ({"step_size": StepSize(GeometricDecay(0.3), max_weight=0.4)}, (X, Y)),
    "adaptive steps": ({"step_size": AdaptiveStep(0.1)}, (X, Y)),
    "adaptive steps, early stopping": (
        {"step_size": "adaptive", "early_stopping": EarlyStopping(fraction=0.3, patience=2)},
        (X, Y),
    ),
    "growth": ({"growth": [Grow(every=1, at_most=2), Prune(every=2)], "step_size": "adaptive"}, (X, Y)),
    "chosen from a list": ({"sigma2": HeldOut(["auto", 0.5, Annealed(2.0)])}, spd_classes(per_class=30)),
    "columns of a callback": ({"callbacks": [squares]}, (X, Y)),
    "columns of a callback, now and then": ({"callbacks": [on_even_epochs]}, (X, Y)),
    "no seed": ({"random_state": None, "early_stopping": EarlyStopping(fraction=0.3)}, (X, Y)),
    "generator": ({"random_state": np.random.RandomState(4)}, (X, Y)),
}


def seeded(settings):
    """All settings of a fit; two calls give generators in one state."""
    settings = SETTINGS | settings
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = np.random.RandomState(3)
    return settings


def undisturbed(settings, data):
    return RiemannianLVQ(**seeded(settings)).fit(*data)


def break_off(path, settings, data, epoch, every=None):
    """Fit until lightning strikes after an epoch, or to the end if that comes before."""
    callbacks = [*settings.get("callbacks", ()), Checkpoint(path, every=every), strike(epoch)]
    with contextlib.suppress(LightningError):
        RiemannianLVQ(**seeded(settings) | {"callbacks": callbacks}).fit(*data)


def broken_off(path, settings, data, epoch, every=None):
    """Fit until lightning strikes after an epoch; and the same without it."""
    break_off(path, settings, data, epoch, every)
    return undisturbed(settings, data)


def assert_same(model, whole, data):
    assert_array_equal(model.prototypes_, whole.prototypes_)
    assert_array_equal(np.asarray(model.state_.prototypes), np.asarray(whole.state_.prototypes))
    assert model.history_.keys() == whole.history_.keys()
    for name in whole.history_.keys() - {"seconds"}:
        assert_array_equal(model.history_[name], whole.history_[name])
        assert model.history_[name].dtype == whole.history_[name].dtype
    assert (model.sigma2_, model.n_epochs_) == (whole.sigma2_, whole.n_epochs_)
    assert_array_equal(model.classes_, whole.classes_)
    assert_array_equal(model.partial_fit(*data[:2]).prototypes_, whole.partial_fit(*data[:2]).prototypes_)


@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_fit_ends_at_the_same_bits(name, tmp_path):
    settings, data = RUNS[name]
    path = tmp_path / "fit.npz"
    whole = undisturbed(settings, data)
    for epoch in (1, 4):
        break_off(path, settings, data, epoch)
        assert load_checkpoint(path).progress.state.epoch == min(epoch, whole.history_["epoch"][-1])
        model = RiemannianLVQ(**SETTINGS | settings).fit(*data, resume=path)
        assert_same(model, copy.deepcopy(whole), data)


def test_resuming_again_and_again_ends_at_the_same_bits(tmp_path):
    path = tmp_path / "fit.npz"
    whole = broken_off(path, {}, (X, Y), 1)
    for epoch in (2, 3, 5):
        with pytest.raises(LightningError):
            RiemannianLVQ(**SETTINGS, callbacks=[Checkpoint(path), strike(epoch)]).fit(X, Y, resume=path)
    model = RiemannianLVQ(**SETTINGS, callbacks=[Checkpoint(path)])
    assert_array_equal(model.fit(X, Y, resume=path).prototypes_, whole.prototypes_)
    assert load_checkpoint(path).progress.state.epoch == 6
    assert_same(model.fit(X, Y, resume=str(path)), whole, (X, Y))  # nothing is left to do


def test_the_order_of_the_samples_and_what_training_does_not_depend_on_may_differ(tmp_path):
    whole = broken_off(tmp_path / "fit.npz", {}, (X, Y), 3)
    order = np.random.default_rng(0).permutation(len(Y))
    free = {"n_jobs": 2, "decision": "posterior", "random_state": np.int64(0)}
    model = RiemannianLVQ(**SETTINGS | free).fit(X[order].tolist(), Y[order].tolist(), resume=tmp_path / "fit.npz")
    assert_array_equal(model.prototypes_, whole.prototypes_)


@pytest.mark.parametrize("patience", [True, False])
def test_a_fit_that_had_stopped_is_over(patience, tmp_path):
    settings = {"early_stopping": EarlyStopping(fraction=0.3, patience=1, tol=1.0)}
    if not patience:
        settings = {"callbacks": [lambda report: report.state.epoch == 2]}
    stopped = RiemannianLVQ(**SETTINGS | settings)
    stopped.callbacks = [*stopped.callbacks, Checkpoint(tmp_path / "fit.npz")]
    stopped.fit(X, Y)
    model = RiemannianLVQ(**SETTINGS | settings).set_params(callbacks=())
    assert_same(model.fit(X, Y, resume=tmp_path / "fit.npz"), stopped, (X, Y))
    assert len(model.history_["epoch"]) - 1 < 3


def test_a_bare_trainer_writes_checkpoints_and_goes_on(tmp_path):
    V, y = vector_classes()
    samples = Samples(V, y)
    settings = {"max_epochs": 5, "sigma2": 1.0, "step_size": GeometricDecay(0.1)}

    def begun(callbacks=()):
        trainer, rng = Trainer(EuclideanVectors(), callbacks=callbacks, **settings), np.random.default_rng(0)
        return trainer, trainer.begin(trainer.init(samples, 2, rng), rng), rng

    trainer, start, rng = begun([Checkpoint(tmp_path / "run.npz"), strike(2)])
    with pytest.raises(LightningError):
        trainer.run(start.state, samples, rng)
    trainer, start, rng = begun()
    whole = [*trainer.epochs(start, samples, rng)][-1]
    loaded = load_checkpoint(tmp_path / "run.npz")
    assert loaded.origin is None
    rest = [*trainer.epochs(loaded.progress, samples, np.random.default_rng(9))]
    assert [progress.state.epoch for progress in rest] == [3, 4, 5]
    assert_array_equal(rest[-1].state.prototypes, whole.state.prototypes)
    model = RiemannianLVQ("euclidean_vectors", **SETTINGS)
    refuse(model, "fit", V, y, resume=tmp_path / "run.npz", match=r"run\.npz was written by a Trainer, not by a fit")


def test_the_memory_of_adaptive_steps_is_in_a_checkpoint(tmp_path):
    path = tmp_path / "fit.npz"
    model = RiemannianLVQ(**SETTINGS, step_size="adaptive", callbacks=[Checkpoint(path)]).fit(X, Y)
    memory = load_checkpoint(path).progress.state.memory
    assert type(memory) is DoGState
    assert memory.n_steps == SETTINGS["max_epochs"] * len(Y)
    assert_array_equal(memory.init, model.state_.memory.init)


def test_columns_of_a_callback_are_in_a_checkpoint_if_it_comes_before(tmp_path):
    for place, callbacks in (("after", [squares]), ("before", [])):
        path = tmp_path / f"{place}.npz"
        callbacks = [*callbacks, Checkpoint(path), *([] if callbacks else [squares])]
        RiemannianLVQ(sigma2=1.0, max_epochs=3, random_state=0, callbacks=callbacks).fit(X, Y)
    after, before = (load_checkpoint(tmp_path / f"{place}.npz").progress.rows for place in ("after", "before"))
    assert [row["square"] for row in after] == [1.0, 4.0, 9.0]
    assert [row.get("square") for row in before[:2]] == [1.0, 4.0]
    assert np.isnan(before[2]["square"])


# --- when


def epochs_written(settings, monkeypatch, tmp_path, clock=lambda: 0.0):
    """Epochs after which a Checkpoint wrote."""
    written: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "replace_file", lambda path, content: written.append(epoch[0]))
        patch.setattr(checkpoint_module, "time", SimpleNamespace(monotonic=clock))
        epoch = [0]

        def count(report):
            epoch[0] = report.state.epoch

        callbacks = [count, Checkpoint(tmp_path / "x", **settings)]
        RiemannianLVQ(sigma2=1.0, max_epochs=9, random_state=0, callbacks=callbacks).fit(X, Y)
    return written


def test_every_so_many_epochs(monkeypatch, tmp_path):
    assert epochs_written({}, monkeypatch, tmp_path) == [*range(1, 10)]
    assert epochs_written({"every": 4}, monkeypatch, tmp_path) == [1, 4, 8]


def test_every_so_many_seconds(monkeypatch, tmp_path):
    now = iter(np.arange(0.0, 1000.0, 10.0))  # one look at the clock an epoch, one more after writing
    assert epochs_written({"seconds": 25.0}, monkeypatch, tmp_path, lambda: next(now)) == [1, 4, 7]
    assert epochs_written({"every": 4, "seconds": 1e9}, monkeypatch, tmp_path) == [1, 4, 8]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"every": 0}, "every must be an integer of at least 1, got 0"),
        ({"every": 1.5}, "every must be an integer"),
        ({"seconds": 0}, "seconds must be a positive number or None, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Checkpoint("x", **settings)


def test_the_path_does_not_follow_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = Checkpoint("fit.npz")
    monkeypatch.chdir("/")
    RiemannianLVQ(sigma2=1.0, max_epochs=1, callbacks=[checkpoint]).fit(X, Y)
    assert os.listdir(tmp_path) == ["fit.npz"]


# --- refused


@attrs.frozen
class Unregistered:
    def __call__(self, epoch, n_epochs):
        return 0.1


def test_what_cannot_be_stored_is_known_after_the_first_epoch(tmp_path):
    model = RiemannianLVQ(sigma2=1.0, step_size=Unregistered(), callbacks=[Checkpoint(tmp_path / "x", every=50)])
    refuse(model, "fit", X, Y, match="cannot be saved: its class Unregistered is not registered")
    model = RiemannianLVQ(sigma2=1.0, callbacks=[Checkpoint(tmp_path / "absent" / "x", every=50)])
    refuse(model, "fit", X, Y, match="absent", error=FileNotFoundError)
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("checkpoint") / "fit.npz"
    broken_off(path, {}, (X, Y), 2)
    return path


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_epochs": 7}, r"fit\.npz was written by a fit with max_epochs=6, this one has 7: set the same to resume"),
        ({"cost": "plvq"}, 'cost="rslvq", this one has "plvq"'),
        ({"metric": "riemann"}, 'metric="affine_invariant", this one has "riemann"'),
        ({"sigma2": 1.0}, r'sigma2=.*\["auto"\].*, this one has 1.0'),
        ({"init": (X[:2], [0, 1])}, 'init="mean", this one has sha256 '),
        ({"early_stopping": True}, "early_stopping=false"),
        ({"early_stopping": EarlyStopping(patience=3)}, 'early_stopping=false, this one has .*"patience": 3'),
        ({"step_size": StepSize(max_weight=None)}, 'step_size="auto", this one has .*"max_weight": null'),
        ({"sigma2": HeldOut([1.0, 2.0])}, r'sigma2=.*"auto".*, this one has .*\[1\.0, 2\.0\]'),
        ({"random_state": 1}, "a fit with another random_state: set the same"),
    ],
)
def test_other_parameters_are_refused(settings, message, written):
    refuse(RiemannianLVQ(**SETTINGS | settings), "fit", X, Y, resume=written, match=message)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ((changed(X, (0, 0, 0), X[0, 0, 0] * (1 + 1e-15)), Y), "one bit of a sample"),
        ((X[1:], Y[1:]), "a sample less"),
        ((X, changed(Y, 0, 1 - Y[0])), "a label"),
        ((X, np.array(["a", "b"])[Y]), "names of classes"),
        ((X, Y, WEIGHTS), "weights"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_data_are_refused(data, why, written):
    model = RiemannianLVQ(**SETTINGS).fit(X, Y)
    refuse(model, "fit", *data, resume=written, match=r"fit\.npz was written by a fit on other samples, labels or")


def forge(path, change):
    """Change the header of a checkpoint, with a seal that matches."""
    header, arrays = open_archive(path, CHECKPOINT)
    change(header)
    forged = path.with_name("forged.npz")
    forged.write_bytes(seal_archive(header, arrays, CHECKPOINT))
    return forged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(format_version=3), "format version 3, newer than 2.*Update rplvq"),
        (lambda header: header["progress"].update(state=None), "holds no state of a trainer"),
        (lambda header: header["progress"].pop("rng"), "missing 1 required"),
        (lambda header: header.update(origin={}), "seed"),
        (lambda header: header.pop("progress"), "progress"),
    ],
)
def test_other_formats_are_refused(change, message, written):
    refuse(RiemannianLVQ(**SETTINGS), "fit", X, Y, resume=forge(written, change), match=message, error=ModelFileError)


def test_other_versions_of_libraries_are_named_where_the_data_seem_others(written):
    forged = forge(written, lambda header: header["versions"].update(numpy="1.0"))
    RiemannianLVQ(**SETTINGS).fit(X, Y, resume=forged)
    refuse(RiemannianLVQ(**SETTINGS), "fit", X[1:], Y[1:], resume=forged, match=r"or other versions than .*1\.0")


def test_damaged_and_other_files_are_refused(written, tmp_path):
    rng, whole = np.random.default_rng(0), written.read_bytes()
    path = tmp_path / "damaged.npz"
    for index in range(200):
        data = bytearray(whole)
        if index % 2:
            del data[rng.integers(len(data)) :]
        else:
            data[rng.integers(len(data))] ^= int(rng.integers(1, 256))
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=r"damaged\.npz"):
            load_checkpoint(path)
    RiemannianLVQ(max_epochs=0).fit(X, Y).save(path)
    refuse(
        RiemannianLVQ(), "fit", X, Y, resume=path, match=r"damaged\.npz cannot be read as a checkpoint: its format is"
    )
    with pytest.raises(ModelFileError, match="cannot be read as a model: its format is 'rplvq-checkpoint'"):
        load_model(written)
    with pytest.raises(FileNotFoundError):
        RiemannianLVQ().fit(X, Y, resume=tmp_path / "absent.npz")


# --- killed


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_killed_fit_is_recovered():
    place = pathlib.Path(__file__).parents[1] / "stress" / "kill_resume.py"
    spec = importlib.util.spec_from_file_location("kill_resume", place)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (kill,) = script.kill_many(1, every=3, compiled=False, seed=1)
    assert kill.recovered
    assert kill.told < script.N_EPOCHS
