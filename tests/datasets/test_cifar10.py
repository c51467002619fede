"""CIFAR-10 as covariances: an archive in the authors' layout is served from this machine, fetched, checked and read."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import logging
import sys
import tarfile
import threading
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rplvq import RiemannianLVQ
from rplvq.datasets import _cifar10, fetch_cifar10_covariances
from rplvq.preprocessing import region_covariances

N_TRAIN, N_TEST = 20, 10
NAME = "cifar-10-binary.tar.gz"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *arguments):
        pass


def batch(rng, count):
    """Labels (count,) with equal numbers of all classes, and images (count, 32, 32, 3)."""
    labels = rng.permutation(np.arange(count) % 10).astype(np.uint8)
    images = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    images[0] = images[0, ..., :1]  # a grey picture
    return labels, images


def write(path, batches):
    """Write an archive as the authors describe it: the label, then the red, the green and the blue plane."""
    with tarfile.open(path, "w:gz") as tar:
        for name, (labels, images) in batches.items():
            planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
            content = np.column_stack([labels, planes]).astype(np.uint8).tobytes()
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def batches():
    rng = np.random.default_rng(0)
    found = {f"data_batch_{i}": batch(rng, N_TRAIN) for i in range(1, 6)}
    return found | {"test_batch": batch(rng, N_TEST)}


@pytest.fixture
def served(batches, tmp_path, monkeypatch):
    """The list of what was asked of a server of this machine that takes the place of the authors'."""
    pooch = pytest.importorskip("pooch", reason="needs pooch: pip install 'rplvq[data]'")
    pooch.get_logger().setLevel(logging.ERROR)
    folder = tmp_path / "server"
    folder.mkdir()
    checksum = write(folder / NAME, batches)
    monkeypatch.setattr(QuietHandler, "asked", [])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_cifar10, "URL", f"http://127.0.0.1:{server.server_port}/{NAME}")
    monkeypatch.setattr(_cifar10, "SHA256", checksum)
    yield QuietHandler.asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_covariances_are_those_of_the_images(served, batches, tmp_path):
    X, y = fetch_cifar10_covariances(data_home=tmp_path / "home", shrinkage=0.0)
    images = np.concatenate([batches[f"data_batch_{i}"][1] for i in range(1, 6)])
    assert_allclose(X, region_covariances(images, "rgb9"))
    assert_array_equal(y, np.concatenate([batches[f"data_batch_{i}"][0] for i in range(1, 6)]))
    assert np.issubdtype(y.dtype, np.signedinteger)
    found = fetch_cifar10_covariances("test", data_home=tmp_path / "home", return_X_y=False)
    labels, images = batches["test_batch"]
    assert_array_equal(found.images, images)
    assert_array_equal(found.target, labels)
    assert_allclose(found.data, region_covariances(images, "rgb9", shrinkage=1e-3))
    assert found.target_names[3] == "cat"
    assert len(found.feature_names) == found.data.shape[1] == 9
    assert "(10, 9, 9)" in found.DESCR


def test_by_default_grey_images_can_be_fitted(served, tmp_path):
    X, y = fetch_cifar10_covariances(data_home=tmp_path)
    assert RiemannianLVQ(max_epochs=0).fit(X, y).prototypes_.shape == (10, 9, 9)
    raw, _ = fetch_cifar10_covariances(data_home=tmp_path, shrinkage=0.0)
    with pytest.raises(ValueError, match=r"X\[0\] is singular to rounding"):
        RiemannianLVQ(max_epochs=0).fit(raw, y)


def test_the_archive_is_downloaded_once(served, tmp_path):
    for subset in ("train", "test", "train"):
        fetch_cifar10_covariances(subset, data_home=tmp_path / "home", n_per_class=1)
    assert served == [f"/{NAME}"]
    assert [path.name for path in (tmp_path / "home").iterdir()] == [NAME]


def test_an_archive_that_is_there_needs_no_network(served, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (home / NAME).write_bytes((tmp_path / "server" / NAME).read_bytes())
    monkeypatch.setattr(_cifar10, "URL", f"http://127.0.0.1:1/{NAME}")
    assert fetch_cifar10_covariances("test", data_home=home)[0].shape == (N_TEST, 9, 9)
    assert served == []


def test_without_a_network_the_way_by_hand_is_named(served, tmp_path, monkeypatch):
    monkeypatch.setattr(_cifar10, "URL", f"http://127.0.0.1:1/{NAME}")
    with pytest.raises(OSError, match=rf"could not be downloaded into .*home.*put the file {NAME}"):
        fetch_cifar10_covariances(data_home=tmp_path / "home")


def test_an_archive_with_another_checksum_is_refused(served, batches, tmp_path):
    batches["test_batch"][1][0, 0, 0, 0] ^= 1
    write(tmp_path / "server" / NAME, batches)
    with pytest.raises(ValueError, match="does not match the known hash"):
        fetch_cifar10_covariances(data_home=tmp_path / "home")
    assert not (tmp_path / "home" / NAME).exists()


def test_the_first_images_of_each_class_are_taken_in_their_order(served, batches, tmp_path):
    labels = np.concatenate([batches[f"data_batch_{i}"][0] for i in range(1, 6)])
    seen, kept = dict.fromkeys(range(10), 0), []
    for index, label in enumerate(labels.tolist()):
        seen[label] += 1
        if seen[label] <= 3:
            kept.append(index)
    X, y = fetch_cifar10_covariances(data_home=tmp_path)
    some, few = fetch_cifar10_covariances(data_home=tmp_path, n_per_class=3)
    assert_array_equal(some, X[kept])
    assert_array_equal(few, y[kept])
    with pytest.raises(ValueError, match="n_per_class must be at most 10, the number of images per class, got 11"):
        fetch_cifar10_covariances(data_home=tmp_path, n_per_class=11)


def test_wrong_arguments_are_refused_before_the_download(tmp_path):
    with pytest.raises(ValueError, match=r"subset must be one of \['train', 'test'\], got 'validation'"):
        fetch_cifar10_covariances("validation", data_home=tmp_path)
    with pytest.raises(ValueError, match="n_per_class must be an integer of at least 1, got 0"):
        fetch_cifar10_covariances(n_per_class=0, data_home=tmp_path)


def test_without_pooch_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"needs pooch: pip install 'rplvq\[data\]'"):
        fetch_cifar10_covariances(data_home=tmp_path)


def test_the_features_are_those_of_the_recorded_covariances(real_data, unpack_symmetric):
    with np.load(real_data("cifar10_images200.npz")) as data, np.load(real_data("cifar10_cov9.npz")) as known:
        assert_allclose(region_covariances(data["images"], "rgb9"), unpack_symmetric(known["test_cov"][:200], 9))
        assert known["classes"].tolist() == list(_cifar10.CLASSES)
