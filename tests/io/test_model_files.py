"""Model files that are damaged, forged, from the future or half written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import pickle
import stat
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import RiemannianLVQ
from rplvq.datasets import make_syn1
from rplvq.exceptions import ModelFileError
from rplvq.io import _archive as archive
from rplvq.io import load_model, save_model
from rplvq.io._archive import open_archive, seal_archive
from rplvq.protocols import Array

X, Y = make_syn1(n_per_class=5, random_state=0)
MODEL = RiemannianLVQ(max_epochs=1, random_state=0).fit(X, Y)
OTHER = RiemannianLVQ(max_epochs=2, random_state=1).fit(X, Y)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    save_model(MODEL, tmp_path / "model.npz")
    return tmp_path / "model.npz"


def flip(data: bytearray, rng: np.random.Generator) -> None:
    data[rng.integers(len(data))] ^= int(rng.integers(1, 256))


def flip_many(data: bytearray, rng: np.random.Generator) -> None:
    for position in rng.choice(len(data), 20, replace=False):
        data[position] ^= int(rng.integers(1, 256))


def cut(data: bytearray, rng: np.random.Generator) -> None:
    del data[rng.integers(len(data)) :]


def cut_inside(data: bytearray, rng: np.random.Generator) -> None:
    start = rng.integers(len(data) - 1)
    del data[start : start + rng.integers(1, len(data) - start)]


def insert(data: bytearray, rng: np.random.Generator) -> None:
    position = int(rng.integers(len(data) + 1))
    data[position:position] = rng.bytes(int(rng.integers(1, 50)))


def blank_page(data: bytearray, rng: np.random.Generator) -> None:
    """Lose a page of the disk; the page holds something else than zeros."""
    while not any(data[(start := int(rng.integers(len(data) - 512))) : start + 512]):
        pass
    data[start : start + 512] = bytes(512)


@pytest.mark.parametrize("damage", [flip, flip_many, cut, cut_inside, insert, blank_page])
def test_no_damaged_file_loads(damage: Callable[[bytearray, np.random.Generator], None], path: pathlib.Path) -> None:
    whole, rng = path.read_bytes(), np.random.default_rng(11)
    for _ in range(100):
        data = bytearray(whole)
        damage(data, rng)
        assert bytes(data) != whole
        path.write_bytes(data)
        with pytest.raises(ModelFileError):
            load_model(path)
    path.write_bytes(whole)
    assert_array_equal(load_model(path).prototypes_, MODEL.prototypes_)


def test_no_change_of_a_single_byte_goes_unseen(path: pathlib.Path) -> None:
    data = bytearray(seal_archive({"a": 1}, {"x": np.arange(3)}))
    for position in range(len(data)):
        data[position] ^= 1
        path.write_bytes(data)
        with pytest.raises(ModelFileError):
            open_archive(path)
        data[position] ^= 1
    path.write_bytes(data)
    assert open_archive(path)[0]["a"] == 1


def test_files_of_another_kind(path: pathlib.Path) -> None:
    for content in (b"", b"P", b"PK", b"hello", pickle.dumps(MODEL), os.urandom(1000)):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"model\.npz (is not a model file|has no seal)"):
            load_model(path)
    np.savez(path, X=X)
    with pytest.raises(ModelFileError, match=r"has no seal of rplvq at its end: it is cut off, or rplvq did not save"):
        load_model(path)
    with pytest.raises(FileNotFoundError):
        load_model(path.with_name("absent.npz"))


def test_message_tells_damage_from_truncation(path: pathlib.Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ModelFileError, match="cut off"):
        load_model(path)
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    with pytest.raises(ModelFileError, match="damaged or was changed: its SHA-256 checksum"):
        load_model(path)


def forge(path: pathlib.Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the model of ``path`` again with another header and a seal that fits."""
    header, arrays = open_archive(path)
    change(header)
    path.write_bytes(seal_archive(header, arrays))


def test_newer_format_is_refused(path: pathlib.Path) -> None:
    forge(path, lambda header: header.update(format_version=3, fitted="something new"))
    with pytest.raises(ModelFileError, match=r"format version 3, newer than 2.*Update rplvq"):
        load_model(path)


def test_the_format_before_the_first_release_is_refused(path: pathlib.Path) -> None:
    forge(path, lambda header: header.update(format_version=1))
    with pytest.raises(ModelFileError, match="format version 1, of a time before the first release: train the model"):
        load_model(path)


@pytest.mark.parametrize("change", [{"format": "x"}, {"format_version": 0}, {"format_version": "1"}, {"arrays": {}}])
def test_other_formats_are_refused(change: dict[str, Any], path: pathlib.Path) -> None:
    forge(path, lambda header: header.update(change))
    with pytest.raises(ModelFileError, match=r"cannot be read as a model: its (format|arrays)"):
        load_model(path)


def test_a_file_names_the_class_of_its_estimator(path: pathlib.Path) -> None:
    header, _ = open_archive(path)
    assert header["estimator"] == "RiemannianLVQ"
    assert type(load_model(path)) is RiemannianLVQ


@pytest.mark.parametrize(
    "name", ["Unknown", "Trainer", "object", "", "GridSearchCV", None, ["RiemannianLVQ"]], ids=repr
)
def test_a_file_of_an_unknown_estimator_is_refused(name: Any, path: pathlib.Path) -> None:
    forge(path, lambda header: header.update(estimator=name))
    message = (
        r"model\.npz: the file holds an estimator .*, which is not known here" if isinstance(name, str) else "model"
    )
    with pytest.raises(ModelFileError, match=message):
        load_model(path)


def test_other_major_version_of_the_library_warns(path: pathlib.Path) -> None:
    forge(path, lambda header: header["versions"].update(rplvq="0.9.7"))
    load_model(path)
    forge(path, lambda header: header["versions"].update(rplvq="9.0.0"))
    with pytest.warns(UserWarning, match=r"written by rplvq 9\.0\.0, this is"):
        load_model(path)


def test_file_cannot_replace_methods(path: pathlib.Path) -> None:
    forge(path, lambda header: header["fitted"].update(predict=0))
    with pytest.raises(ModelFileError, match="sets 'predict', which is no fitted attribute"):
        load_model(path)


class Trap:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace: pathlib.Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.trace),)


def test_pickled_members_are_refused_unread(path: pathlib.Path) -> None:
    trace = path.with_name("trace")
    pickled = io.BytesIO()
    np.save(pickled, np.array([Trap(trace)], dtype=object), allow_pickle=True)
    for content in (pickled.getvalue(), pickle.dumps(Trap(trace))):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archived, zipfile.ZipFile(path) as old:
            for name in old.namelist():
                archived.writestr(name, content if name == "prototypes_.npy" else old.read(name))
            archived.comment = archive.SEAL + b"0" * archive.DIGEST_SIZE
        body = buffer.getvalue()[: -archive.DIGEST_SIZE]
        digest = hashlib.sha256(body).hexdigest().encode()
        path.with_name("forged.npz").write_bytes(body + digest)
        with pytest.raises(ModelFileError, match="cannot be read as a model"):
            load_model(path.with_name("forged.npz"))
    assert not trace.exists()


def places(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in pairs for place in [(value, key), *places(inner)]]


def test_forged_headers_raise_one_kind_of_error_or_load(path: pathlib.Path) -> None:
    rng, refused = np.random.default_rng(2), 0
    header, arrays = open_archive(path)
    text = json.dumps(header)
    parts = [{"part": ["RSLVQ", {"y": 1}]}, {"part": ["os.system", {}]}]
    junk = [None, -1, 1e300, "x", [], {}, {"array": "absent"}, *parts]
    for _ in range(150):
        changed = json.loads(text)
        container, key = (lambda found: found[rng.integers(len(found))])(places(changed))
        container[key] = junk[rng.integers(len(junk))]
        path.write_bytes(seal_archive(changed, arrays))
        try:
            with warnings.catch_warnings(action="ignore"):
                assert isinstance(load_model(path), RiemannianLVQ)
        except ModelFileError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize("broken", ["os.replace", "os.fsync", "zipfile.ZipFile.open", "numpy.lib.format.write_array"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_failure_in_the_middle_leaves_the_old_file(
    broken: str, error: BaseException, path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(broken, fail)
        with pytest.raises(type(error)):
            save_model(OTHER, path)
    assert_array_equal(load_model(path).prototypes_, MODEL.prototypes_)
    assert os.listdir(path.parent) == ["model.npz"]
    save_model(OTHER, path)
    assert_array_equal(load_model(path).prototypes_, OTHER.prototypes_)


def test_process_that_dies_in_the_middle_leaves_the_old_file(path: pathlib.Path) -> None:
    program = (
        "import os, sys; from rplvq.io import load_model, save_model; model = load_model(sys.argv[1]); "
        "os.replace = lambda *names: os._exit(9); save_model(model.set_params(verbose=1), sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], timeout=120, check=False).returncode == 9
    assert load_model(path).verbose == 0
    assert len(os.listdir(path.parent)) == 2  # the new file is left under its temporary name


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_of_the_old_file_stay(path: pathlib.Path) -> None:
    path.chmod(0o640)
    link = path.with_name("link.npz")
    link.symlink_to(path.name)
    save_model(OTHER, link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert_array_equal(load_model(path).prototypes_, OTHER.prototypes_)


def test_same_model_same_bytes_and_readable_without_the_library(path: pathlib.Path) -> None:
    again = path.with_name("no suffix is added")
    save_model(load_model(path), str(again))
    assert again.read_bytes() == path.read_bytes()
    with np.load(path) as arrays:
        members: dict[str, Array] = dict(arrays)
    header = json.loads(members.pop("header").tobytes())
    assert_array_equal(members["prototypes_"], MODEL.prototypes_)
    assert_array_equal(members["history_.cost"], MODEL.history_["cost"])
    assert header["parameters"]["metric"] == "affine_invariant"
    assert set(header["versions"]) == {"rplvq", "numpy", "scikit-learn", "python"}
