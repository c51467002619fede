"""Properties of files, on random models and random bytes: saved is loaded, and what is damaged takes one line."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import tempfile
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import rplvq
from rplvq import GLVQ, PLVQ, RSLVQ, RiemannianLVQ
from rplvq.cli import main
from rplvq.io import load_model
from tests.problems import FEW, spd_classes

X, Y = spd_classes(per_class=4, n=2)
POSITIVE = st.floats(1e-3, 1e3)
MANIFOLDS = st.one_of(
    st.builds(rplvq.AffineInvariant, max_step_length=st.floats(0.1, 20)),
    st.builds(rplvq.LogEuclidean),
    st.builds(rplvq.LogCholesky),
    st.builds(rplvq.TangentSpace, whiten=st.booleans()),
    st.builds(rplvq.BuresWasserstein, min_stretch=st.floats(0.01, 0.9)),
    st.builds(rplvq.LearnedLogEuclidean, rate=st.floats(0, 1), rank=st.sampled_from([None, 1, 2])),
    st.builds(rplvq.ProjectedEuclidean, tau=st.floats(1e-9, 1e-2), relative=st.booleans()),
    st.sampled_from(sorted(set(rplvq.manifolds.MANIFOLDS) - {"euclidean_vectors"})),
)
COSTS = st.one_of(
    st.builds(RSLVQ, priors=st.sampled_from([None, (0.25, 0.75)])),
    st.builds(PLVQ, priors=st.sampled_from([None, (0.5, 0.5)])),
    st.builds(GLVQ),
    st.sampled_from(sorted(rplvq.costs.COSTS)),
)
SCHEDULES = st.one_of(
    POSITIVE,
    st.builds(rplvq.Constant, POSITIVE),
    st.builds(rplvq.GeometricDecay, POSITIVE, ratio=st.floats(0.01, 1)),
    st.builds(rplvq.StepDecay, POSITIVE, factor=st.floats(0.1, 1), every=st.integers(1, 5)),
    st.builds(rplvq.Annealed, POSITIVE),
)
STEPS = st.floats(1e-3, 0.1) | st.none() | st.builds(rplvq.GeometricDecay, st.floats(1e-3, 0.1))
MODELS = st.builds(
    RiemannianLVQ,
    MANIFOLDS,
    COSTS,
    sigma2=SCHEDULES | st.just("auto") | st.builds(rplvq.HeldOut, st.lists(SCHEDULES, min_size=1, max_size=2)),
    step_size=st.one_of(
        STEPS,
        st.builds(rplvq.StepSize, STEPS, max_weight=st.none() | st.floats(0.01, 1)),
        st.builds(rplvq.AdaptiveStep, st.none() | st.floats(1e-3, 0.1), max_weight=st.none() | st.floats(0.01, 1)),
        st.sampled_from(["auto", "adaptive"]),
    ),
    early_stopping=st.booleans() | st.builds(rplvq.EarlyStopping, st.just(0.5), st.integers(1, 3), st.floats(0, 1)),
    init=st.sampled_from(["mean", "kmeans"]),
    prototypes_per_class=st.integers(1, 2),
    batch_size=st.none() | st.integers(1, 9),
    max_epochs=st.integers(0, 2),
    random_state=st.integers(0, 2**32 - 1),
)


@pytest.mark.filterwarnings("ignore::rplvq.exceptions.DivergenceWarning")  # steps are as random as the rest
@FEW
@given(MODELS, st.sampled_from([Y, Y > 0, np.array(["left", "Füße"])[Y], Y - 1.0]))
def test_what_is_saved_is_loaded(model, y):
    if model.init == "mean" and model.prototypes_per_class == 2:
        model.set_params(prototypes_per_class=1)
    if model.early_stopping is True:  # a tenth of eight samples cannot be held out
        model.set_params(early_stopping=rplvq.EarlyStopping(0.5))
    model.fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.npz")
        model.save(path)
        again = load_model(path)
        again.save(os.path.join(folder, "again.npz"))
        assert pathlib.Path(folder, "again.npz").read_bytes() == pathlib.Path(path).read_bytes()
    assert repr(again.get_params()) == repr(model.get_params())
    assert repr(again.history_) == repr(model.history_)
    assert_array_equal(again.prototypes_, model.prototypes_)
    assert_array_equal(again.classes_, model.classes_)
    for method in ("predict", "transform", "decision_function"):
        assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))


# --- the command line on files that are not trusted


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path(self.path),)


def run(arguments):
    """Status, standard output and standard error of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    return status, out.getvalue(), err.getvalue()


def assert_refused(arguments):
    status, out, err = run(arguments)
    assert (status, out) == (2, "")
    assert err.startswith("rplvq: error: ")
    assert len(err.splitlines()) == 1


def commands(folder, data):
    """Every command that reads a file of data; those that read a model get a good one."""
    model, fast = str(folder / "good.npz"), ["--epochs", "0", "--quiet"]
    if not (folder / "good.npz").exists():
        RiemannianLVQ(max_epochs=0).fit(X, Y).save(model)
    return [
        ["compare", "--data", data, "--splits", "2", "--jobs", "1", *fast],
        ["fit", "--data", data, "--model", str(folder / "new.npz"), *fast],
        ["predict", "--data", data, "--model", model],
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def archive_head(tail):
    return b"PK\x03\x04" + tail


def npy_head(tail):
    return b"\x93NUMPY\x01\x00" + tail


def in_archive(tail):
    """Arbitrary bytes as members of a real archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("X.npy", tail)
        archive.writestr("y.npy", tail)
    return stream.getvalue()


NOISE = st.binary(max_size=300)
BYTES = st.one_of(
    NOISE, NOISE.map(archive_head), NOISE.map(npy_head), NOISE.map(in_archive), NOISE.map(npy_head).map(in_archive)
)


@FEW
@given(BYTES, st.integers(0, 2))
def test_arbitrary_bytes_as_data_take_one_line(folder, content, command):
    path = folder / "data.npz"
    path.write_bytes(content)
    assert_refused(commands(folder, str(path))[command])
    assert not (folder / "new.npz").exists()


@FEW
@given(BYTES)
def test_arbitrary_bytes_as_samples_or_model_take_one_line(folder, content):
    for name in ("samples.npy", "model.npz"):
        (folder / name).write_bytes(content)
    assert_refused(["predict", "--data", str(folder / "samples.npy"), "--model", commands(folder, "")[2][-1]])
    assert_refused(["predict", "--data", "syn1", "--model", str(folder / "model.npz")])
    assert_refused(["info", str(folder / "model.npz")])


WRONG_X = {
    "absent": lambda path: None,
    "pickled": lambda path: np.array([Trap(path)] * len(X), dtype=object),
    "structured": lambda path: np.zeros(len(X), dtype=[("a", float), ("b", "U3")]),
    "words": lambda path: np.full(X.shape, "a"),
    "dates": lambda path: np.zeros(X.shape, dtype="M8[D]"),
    "bytes": lambda path: np.full(X.shape, b"1"),
    "truth": lambda path: X > 0,
    "scalar": lambda path: np.float64(3),
    "one axis": lambda path: X[:, 0, 0],
    "oblong": lambda path: X[:, :1],
    "no samples": lambda path: X[:0],
    "no channels": lambda path: X[:, :0, :0],
    "not a number": lambda path: X * np.nan,
    "negative": lambda path: -X,
    "five axes": lambda path: X[:, None, None],
}
WRONG_Y = {
    "pickled": lambda path: np.array([Trap(path)] * len(X), dtype=object),
    "structured": lambda path: np.zeros(len(X), dtype=[("a", float)]),
    "dates": lambda path: np.zeros(len(X), dtype="M8[D]"),
    "complex": lambda path: Y + 0j,
    "scalar": lambda path: np.float64(3),
    "short": lambda path: Y[1:],
    "three axes": lambda path: np.zeros((len(X), 2, 2)),
    "no columns": lambda path: np.zeros((len(X), 0)),
    "soft, NaN": lambda path: np.full((len(X), 2), np.nan),
    "soft, of three classes": lambda path: np.eye(3)[Y + 1],
    "one class": lambda path: np.zeros(len(X)),
    "not a number": lambda path: Y * np.nan,
}


@FEW
@given(
    st.one_of(
        st.tuples(st.just("X"), st.sampled_from(sorted(WRONG_X))),
        st.tuples(st.just("y"), st.sampled_from(sorted(WRONG_Y))),
    ),
    st.integers(0, 2),
    st.booleans(),
    st.dictionaries(st.text("abXyz_", min_size=2, max_size=4), st.integers(0, 9), max_size=2),
    st.integers(0, 2**32 - 1),
)
def test_wrong_members_take_one_line_and_no_pickle_is_run(folder, wrong, command, compressed, others, seed):
    member, kind = wrong
    if command == 2 and member == "y" and kind == "one class":
        return  # which may well be the samples to predict
    sprung = folder / "sprung"
    order = np.random.default_rng(seed).permutation(len(X))
    value = (WRONG_X if member == "X" else WRONG_Y)[kind](str(sprung))
    members = {
        name: part for name, part in ({"X": X[order], "y": Y[order]} | {member: value}).items() if part is not None
    }
    path = folder / "members.npz"
    (np.savez_compressed if compressed else np.savez)(path, **(others | members))
    assert_refused(commands(folder, str(path))[command])
    assert not sprung.exists()
    assert not (folder / "new.npz").exists()


def test_the_trap_works(folder):
    sprung = folder / "trapped"
    np.save(folder / "trap.npy", np.array([Trap(str(sprung))], dtype=object), allow_pickle=True)
    np.load(folder / "trap.npy", allow_pickle=True)
    assert sprung.exists()
