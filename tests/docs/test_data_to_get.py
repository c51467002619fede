"""The code in the page on data sets that makes the files of large data, on simulated sources of the same form."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from examples.paper.data import coherency_matrices, load_arrays
from rplvq.features import region_covariances

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "api" / "datasets.md").read_text(encoding="utf-8")
RATE = 160


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs the code under a heading in an empty folder, where RPLVQ_DATA names the folder data."""
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path / "data"))

    def call(heading):
        code = re.search(rf"^### {heading}\n(?:(?!### )[^\n]*\n)*?```py\n(.*?)^```$", TEXT, flags=re.M | re.S)[1]
        exec(compile(code, heading, "exec"), {})

    return call


def test_trials_of_physionet(run, monkeypatch):
    mne = pytest.importorskip("mne")
    rng, runs = np.random.default_rng(0), {}
    names = (
        "Fc5. Fc3. Fc1. Fcz. Fc2. Fc4. C5.. C3.. C1.. Cz.. C2.. C4.. C6.. Cp3. Cp1. Cpz. Cp2. Cp4. Fz.. P1.. Pz.. P2.."
    )
    info = mne.create_info([*names.split(), "Poz."], RATE, "eeg")

    def load_data(subjects, runs, update_path):
        assert (subjects, update_path) == (1, False)
        return [f"S001R{runs[0]:02d}.edf"]

    def read_raw_edf(file, preload):
        raw = mne.io.RawArray(1e-6 * rng.normal(size=(23, 30 * RATE)), info, verbose=False)
        onsets, kinds = [0, 4, 9, 13, 18, 22], ["T0", "T1", "T0", "T2", "T0", "T1"]
        runs[int(file[5:7])] = raw.get_data() * 1e6
        return raw.set_annotations(mne.Annotations(onsets, 4.1, kinds))

    monkeypatch.setattr(mne.datasets.eegbci, "load_data", load_data)
    monkeypatch.setattr(mne.io, "read_raw_edf", read_raw_edf)
    with mne.utils.use_log_level("ERROR"):
        run("EEG Motor Movement/Imagery")
    trials, y, number, unit, sfreq = load_arrays("eegmmi_s001_raw.npz", "trials", "y", "run", "unit_microvolt", "sfreq")
    assert trials.shape == (36, 22, 640)
    assert (float(unit), float(sfreq)) == (1.0, RATE)
    assert number.tolist() == np.repeat(range(3, 15), 3).tolist()
    assert y[:9].tolist() == ["left fist", "right fist", "left fist"] * 2 + ["both fists", "both feet", "both fists"]
    expected = runs[4][:, 13 * RATE : 17 * RATE]  # the second movement of the second run
    np.testing.assert_allclose(trials[4, 0], expected[18])  # Fz is first
    np.testing.assert_allclose(trials[4, 3], expected[3])  # FCz


def test_a_scene_of_polsarpro(run):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    looks = rng.normal(size=(4, 5, 3, 6)) + 1j * rng.normal(size=(4, 5, 3, 6))
    scene, labels = (looks @ looks.conj().swapaxes(-1, -2)).astype(np.complex64), rng.integers(0, 6, (4, 5))
    Path("T3").mkdir()
    Path("T3/config.txt").write_text("Nrow\n4\n---------\nNcol\n5\n")
    for i in range(3):
        scene[..., i, i].real.tofile(f"T3/T{i + 1}{i + 1}.bin")
        for j in range(i + 1, 3):
            scene[..., i, j].real.tofile(f"T3/T{i + 1}{j + 1}_real.bin")
            scene[..., i, j].imag.tofile(f"T3/T{i + 1}{j + 1}_imag.bin")
    image.fromarray(labels.astype(np.uint8)).save("SF-AIRSAR-label2d.png")
    run("AIRSAR San Francisco")
    planes, names, found = load_arrays("polsar_sf_airsar_T3.npz", "planes", "plane_names", "labels")
    assert planes.dtype == np.float32
    np.testing.assert_allclose(coherency_matrices(planes, names), scene, rtol=1e-6)
    np.testing.assert_array_equal(found, labels)


def test_images_of_objects(run):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels, masks = rng.integers(0, 256, (2, 12, 9)), np.zeros((2, 12, 9))
    masks[:, 2:9, 1:7] = 255
    for name, picture, mask in zip(("apple1", "car2"), pixels, masks, strict=True):
        folder = Path("eth80-cropped256", name, "maps")
        folder.mkdir(parents=True)
        image.fromarray(picture.astype(np.uint8)).save(folder.parent / f"{name}-066-063.png")
        image.fromarray(mask.astype(np.uint8)).save(folder / f"{name}-066-063-map.png")
    run("ETH-80")
    whole, masked, y, number = load_arrays("eth80_cov5.npz", "full256", "mask256", "y", "object")
    np.testing.assert_allclose(whole, region_covariances(pixels, "grey5"))
    np.testing.assert_allclose(masked, region_covariances(pixels, "grey5", masks=masks > 0))
    assert (y.tolist(), number.tolist()) == ([0, 1], [1, 2])
