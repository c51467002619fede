"""The ETH-80 experiments of examples/paper, and its loader of a folder of images."""

from __future__ import annotations

import numpy as np
import pytest

from examples.paper import data, eth80, eth80_clusters, runner
from examples.paper.eth80_images import load_folder
from examples.paper.relatives import RELATIVES
from rplvq.features import region_covariances

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all

needs_data = pytest.mark.skipif(
    not data.is_available("eth80_cov5.npz"), reason="real data absent: no eth80_cov5.npz (set RPLVQ_DATA)"
)


@needs_data
def test_split_takes_21_images_of_each_object():
    full = eth80.split("full256", 8, 0)
    assert full.X_train.shape == (1680, 5, 5)
    assert full.X_test.shape == (1600, 5, 5)
    np.testing.assert_array_equal(np.bincount(full.y_train), 210)
    X, number = data.load_arrays("eth80_cov5.npz", "full256", "object")
    known = {matrix.tobytes(): n for matrix, n in zip(X, number, strict=True)}
    chosen = [known[matrix.tobytes()] for matrix in full.X_train]
    np.testing.assert_array_equal(np.bincount(chosen)[1:], 21 * 8)
    train = {matrix.tobytes() for matrix in full.X_train}
    assert not train & {matrix.tobytes() for matrix in full.X_test}


@needs_data
def test_split_depends_on_the_repetition_and_not_on_the_number_of_classes():
    three, eight = eth80.split("full256", 3, 4), eth80.split("full256", 8, 4)
    np.testing.assert_array_equal(three.X_train, eight.X_train[:630])
    np.testing.assert_array_equal(np.unique(three.y_test), [0, 1, 2])
    assert not np.array_equal(three.X_train, eth80.split("full256", 3, 5).X_train)
    assert not np.array_equal(three.X_train, eth80.split("mask256", 3, 4).X_train)


@needs_data
def test_class_means_reach_the_papers_accuracy():
    # The paper: .6316 +- .0060 for eight categories, .8876 +- .0075 for three.
    settings = {"repetition": 0, "method": "MDRM", "descriptor": "full256"}
    assert eth80.classify(n_classes=8, **settings)["accuracy"] == pytest.approx(0.6316, abs=0.02)
    assert eth80.classify(n_classes=3, **settings)["accuracy"] == pytest.approx(0.8876, abs=0.02)


@needs_data
def test_smoke_runs_every_method_through_the_runner(tmp_path):
    jobs = eth80.smoke()
    records = {record["method"]: record for record in runner.run(jobs, folder=tmp_path, verbose=0)}
    added = {"PLRSQ-Const, K=1-2", "PLRSQ-AN, prototypes"}
    assert set(records) == {*eth80.BASELINES, *eth80.CLUSTERINGS, *eth80.PLRSQ, *RELATIVES, *added}
    curve = records.pop("PLRSQ-AN, prototypes")["result"]
    assert curve["prototypes_per_class"] == [1, 2]
    assert min(curve["accuracy"]) > 0.7
    scores = {method: record["result"]["accuracy"] for method, record in records.items()}
    assert min(scores.values()) > 0.7
    assert scores["PLRSQ-AN"] > scores["MDRM"]
    selected = records["PLRSQ-Const, K=1-2"]["result"]
    assert selected["chosen"] == {"sigma2": 0.5, "prototypes_per_class": 1}  # of equals, the first
    assert len(selected["tried"]) == 2
    assert runner.pending(jobs, tmp_path) == []


def test_every_job_has_a_file_of_its_own_and_needs_no_data():
    jobs = eth80.jobs(quick=False)
    assert len({runner.path_of("", job) for job in jobs}) == len(jobs)
    table = [job for job in jobs if job.experiment == "eth80-full256-C8" and job.method == "PLRSQ-Const"]
    assert [job.repetition for job in table] == list(range(20))
    assert table[0].settings["prototypes_per_class"] == 6
    assert table[0].settings["max_epochs"] == 100
    grid = [job for job in jobs if job.experiment == "eth80-selection-C5" and job.repetition == 4]
    assert [job.settings["prototypes_per_class"] for job in grid] == [[k] for k in range(1, 7)]
    assert len(eth80.jobs(quick=True)) < 50


@needs_data
def test_readings_of_the_clusterings(tmp_path):
    jobs = [job for job in eth80_clusters.smoke() if "whole images" in job.method]
    results = {r["method"]: r["result"] for r in runner.run(jobs, folder=tmp_path, verbose=0)}
    assert len(results) == 8
    for name, result in results.items():
        assert result["purity"] >= result["accuracy"], name
        assert (result["accuracy"] > 0.75) == (" 2 C" not in name and " 4 C" not in name)  # one cluster per class
    other = eth80_clusters.unit_variances(eth80.split("full256", 3, 0).X_test)
    np.testing.assert_allclose(np.diagonal(other, axis1=1, axis2=2).mean(axis=0), 1.0)


def write_png(path, pixels):
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path):
    """Two views of apple1 (grey and color, of different sizes), one of apple10, one of cup2; their pixels by name."""
    rng = np.random.default_rng(0)
    sizes = {
        "apple1/apple1-000-000": (12, 12),
        "apple1/apple1-066-063": (14, 16, 3),
        "apple10/apple10-035-045": (12, 12),
        "cup2/cup2-090-000": (12, 12),
    }
    pixels = {name: rng.integers(0, 256, size, dtype=np.uint8) for name, size in sizes.items()}
    for name, values in pixels.items():
        write_png(tmp_path / f"{name}.png", values)
        mask = np.zeros(values.shape[:2], dtype=np.uint8)
        mask[2:9, 1:10] = 255
        directory, stem = name.split("/")
        write_png(tmp_path / directory / "maps" / f"{stem}-map.png", mask)
    (tmp_path / "readme.txt").write_text("not an object")
    (tmp_path / "contours").mkdir()
    return tmp_path, pixels


def test_loader_reads_objects_views_and_whole_images(folder):
    root, pixels = folder
    found = load_folder(root)
    assert found.X.shape == (4, 5, 5)
    assert found.classes.tolist() == ["apple", "cup"]
    assert found.y.tolist() == [0, 0, 0, 1]
    assert found.object.tolist() == [1, 1, 10, 2]
    assert found.view.tolist() == [[0, 0], [66, 63], [35, 45], [90, 0]]
    grey = pixels["cup2/cup2-090-000"]
    np.testing.assert_allclose(found.X[3], region_covariances(grey[None], "grey5")[0])
    color = pixels["apple1/apple1-066-063"] @ np.array([0.299, 0.587, 0.114])
    # Grey levels are rounded to bytes, so that variances of about 4000 differ by a little.
    np.testing.assert_allclose(found.X[1, 2, 2], region_covariances(color[None], "grey5")[0, 2, 2], rtol=1e-2)


def test_loader_reads_the_pixels_of_the_maps(folder):
    root, pixels = folder
    mask = np.zeros((12, 12), dtype=bool)
    mask[2:9, 1:10] = True
    expected = region_covariances(pixels["apple1/apple1-000-000"][None], "grey5", masks=mask[None])
    np.testing.assert_allclose(load_folder(root, masked=True).X[0], expected[0])


def test_loader_says_what_is_wrong(folder, tmp_path_factory):
    root, _ = folder
    with pytest.raises(ValueError, match="holds no objects"):
        load_folder(tmp_path_factory.mktemp("empty"))
    write_png(root / "cup2" / "maps" / "cup2-090-000-map.png", np.ones((5, 5), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"different sizes, \(12, 12\) and \(5, 5\)"):
        load_folder(root, masked=True)
    (root / "cup2" / "maps" / "cup2-090-000-map.png").unlink()
    with pytest.raises(FileNotFoundError, match="has no map"):
        load_folder(root, masked=True)
    (root / "dog3").mkdir()
    with pytest.raises(ValueError, match="object without images"):
        load_folder(root)


@needs_data
def test_loader_gives_the_stored_descriptors_of_real_images(tmp_path):
    if not data.is_available("eth80_images48.npz"):
        pytest.skip("real data absent: no eth80_images48.npz (set RPLVQ_DATA)")
    images, index, y, number = data.load_arrays("eth80_images48.npz", "images", "index", "y", "object")
    stored, classes = data.load_arrays("eth80_cov5.npz", "full256", "classes")
    for i in range(6):
        name = f"{classes[y[i]]}{number[i]}"
        write_png(tmp_path / name / f"{name}-{i:03d}-000.png", images[i])
    found = load_folder(tmp_path)
    where = found.view[:, 0]
    np.testing.assert_allclose(found.X, stored[index[where]], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.classes[found.y], classes[y[where]])
