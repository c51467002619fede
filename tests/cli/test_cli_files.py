"""Files given to the command line: what is read, what is refused in one line, and that no pickle is run."""

from __future__ import annotations

import io
import pathlib
import zipfile

import numpy as np
import pytest

from rplvq.cli import main
from rplvq.cli._data import load_data
from rplvq.datasets import make_syn1
from tests.commands import FAST, fails


def members(**changed):
    X, y = make_syn1(n_per_class=9, n=4, random_state=0)
    return {name: value for name, value in ({"X": X, "y": y} | changed).items() if value is not None}


def bad_matrix(value):
    X = members()["X"].copy()
    X[20] = value
    return X


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": None}, "has no member 'X', only ['y']"),
        ({"y": None, "labels": np.arange(36)}, "has no member 'y', only ['X', 'labels']"),
        ({"X": np.array(["a"] * 36)}, "X in"),
        ({"X": np.eye(4)[0]}, "X in"),
        ({"y": np.zeros((36, 2, 2))}, "y in"),
        ({"y": np.zeros(36, dtype="datetime64[D]")}, "y in"),
        ({"y": np.zeros(35)}, "differ in length: 36 samples, 35 labels"),
        ({"X": np.ones((36, 4, 3))}, "metric affine_invariant: X must hold square matrices"),
        ({"X": np.ones((36, 4))}, "metric affine_invariant: X must have 3 axes"),
        ({"X": bad_matrix(np.nan)}, "X[20] contains NaN"),
        ({"X": bad_matrix(-np.eye(4))}, "X[20] is not positive definite"),
        ({"y": np.zeros(36)}, "y holds only one class, [0.0]"),
        ({"y": np.repeat(["a", "b"], [34, 2])}, "class 'b' has 2 sample(s), fewer than the 3 folds"),
        ({"y": np.full((36, 3), 0.5)}, "y holds only one class"),
        ({"y": np.linspace(0, 1, 36)}, "fewer than the 3 folds"),
        ({"y": np.repeat([0.25, 0.5, np.nan], 12)}, "NaN"),
    ],
)
def test_wrong_members_take_one_line(capsys, tmp_path, changed, message):
    np.savez(tmp_path / "bad.npz", **members(**changed))
    assert message in fails(capsys, ["compare", "--data", str(tmp_path / "bad.npz"), *FAST, "--quiet"])


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path(self.path),)


@pytest.mark.parametrize("member", ["X", "y"])
def test_pickles_are_refused_and_not_run(capsys, tmp_path, member):
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(str(sprung))] * 36, dtype=object)
    np.savez(tmp_path / "trap.npz", **members(**{member: trap}))
    with np.load(tmp_path / "trap.npz", allow_pickle=True) as archive:
        archive[member]
    assert sprung.exists()  # the trap works
    sprung.unlink()
    line = fails(capsys, ["compare", "--data", str(tmp_path / "trap.npz"), *FAST])
    assert "holds Python objects, which are not loaded" in line
    assert not sprung.exists()


def test_labels_of_python_objects_are_refused_with_a_remedy(capsys, tmp_path):
    np.savez(tmp_path / "objects.npz", **members(y=np.array(["a", "b", "c"] * 12, dtype=object)))
    line = fails(capsys, ["compare", "--data", str(tmp_path / "objects.npz"), *FAST])
    assert "holds Python objects, which are not loaded: store numbers, or strings as y.astype(str)" in line


def test_other_kinds_of_files_are_refused(capsys, tmp_path):
    np.save(tmp_path / "single.npy", np.eye(3))
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_text("X,y\n1,2\n")
    for name in ("single.npy", "empty.npz", "text.npz"):
        assert "not a .npz file" in fails(capsys, ["compare", "--data", str(tmp_path / name), *FAST])


def test_an_archive_of_other_things_is_refused(capsys, tmp_path):
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("X.npy", b"not an array")
        archive.writestr("y.npy", b"")
    assert "not an array" in fails(capsys, ["compare", "--data", str(tmp_path / "zip.npz"), *FAST])


def damaged(rng):
    """Bytes of a good file with some of them changed, cut off or inserted; or nothing but noise."""
    stream = io.BytesIO()
    (np.savez, np.savez_compressed)[rng.integers(2)](stream, X=np.stack([np.eye(2)] * 6), y=np.arange(6) % 2)
    data = bytearray(stream.getvalue())
    at = int(rng.integers(len(data)))
    kind = rng.integers(4)
    if kind == 0:
        data[at] ^= int(rng.integers(1, 256))
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at:at] = rng.bytes(int(rng.integers(1, 9)))
    else:
        data = bytearray(b"PK\x03\x04" + rng.bytes(200))
    return bytes(data)


def test_damaged_files_are_read_or_refused_but_never_crash(tmp_path):
    rng = np.random.default_rng(0)
    path, refused, read = tmp_path / "damaged.npz", 0, 0
    for _ in range(300):
        path.write_bytes(damaged(rng))
        try:
            X, y, _ = load_data([str(path)], 0)
        except ValueError as error:
            refused += str(path) in str(error)
        else:
            assert len(X) == len(y)
            read += 1
    assert refused + read == 300
    assert refused > 200


def test_complex_matrices_string_labels_and_soft_labels_are_welcome(capsys, tmp_path):
    X, y = members().values()
    imaginary = 0.05j * (np.triu(np.ones((4, 4)), 1) - np.tril(np.ones((4, 4)), -1))
    np.savez(tmp_path / "complex.npz", X=X + imaginary, y=np.array(list("abcd"))[y])
    np.savez(tmp_path / "soft.npz", X=X, y=np.eye(4)[y])
    for name in ("complex", "soft"):
        arguments = ["compare", "--data", str(tmp_path / f"{name}.npz"), *FAST, "--costs", "plvq", "--quiet"]
        assert main([*arguments, "--metrics", "riemann,logeuclid"]) == 0
        assert "riemann plvq" in capsys.readouterr().out


@pytest.mark.parametrize(("suffix", "loader"), [(".mat", "scipy.io.loadmat"), (".csv", "numpy.loadtxt")])
def test_files_of_other_programs_are_refused_with_the_line_that_reads_them(tmp_path, capsys, suffix, loader):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(b"1,2,3")
    line = fails(capsys, ["fit", "--data", str(path), "--model", str(tmp_path / "m.npz")])
    assert loader in line
    assert "numpy.savez(path, X=X, y=y)" in line
