"""Scenes in the format of PolSARpro: what was written is read, and every damage is named."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rplvq import RiemannianLVQ
from rplvq.datasets import read_polsar
from rplvq.features import boxcar

SHAPE = (4, 5)
CONFIG = "Nrow\n4\n---------\nNcol\n5\n---------\nPolarCase\nmonostatic\n---------\nPolarType\nfull\n"


def write(folder, scene, letter="T", config=CONFIG):
    """Write a scene (rows, columns, 3, 3) in the format that PolSARpro documents."""
    folder.mkdir(exist_ok=True)
    (folder / "config.txt").write_text(config)
    for i in range(3):
        scene[..., i, i].real.astype("<f4").tofile(folder / f"{letter}{i + 1}{i + 1}.bin")
        for j in range(i + 1, 3):
            scene[..., i, j].real.astype("<f4").tofile(folder / f"{letter}{i + 1}{j + 1}_real.bin")
            scene[..., i, j].imag.astype("<f4").tofile(folder / f"{letter}{i + 1}{j + 1}_imag.bin")
    return folder


def looks(seed=0, shape=SHAPE, n_looks=4):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(*shape, 3, n_looks)) + 1j * rng.normal(size=(*shape, 3, n_looks))
    scene = vectors @ vectors.conj().swapaxes(-1, -2) / n_looks
    return (0.5 * (scene + scene.conj().swapaxes(-1, -2))).astype(np.complex64)


@pytest.mark.parametrize("letter", ["T", "C"])
def test_what_was_written_is_read(tmp_path, letter):
    scene = looks()
    found = read_polsar(write(tmp_path / f"{letter}3", scene, letter))
    assert found.dtype == np.complex64
    upper = np.triu_indices(3)
    assert_array_equal(found[..., *upper], scene[..., *upper])
    assert_array_equal(found, found.conj().swapaxes(-1, -2))
    assert_array_equal(read_polsar(str(tmp_path / f"{letter}3")), found)


def test_a_file_is_read_row_by_row(tmp_path):
    folder = write(tmp_path / "T3", looks())
    np.arange(20, dtype="<f4").tofile(folder / "T23_imag.bin")
    found = read_polsar(folder)
    assert_array_equal(found[1, :, 1, 2].imag, [5, 6, 7, 8, 9])
    assert_array_equal(found[1, :, 2, 1].imag, [-5, -6, -7, -8, -9])


def test_a_scene_is_averaged_and_classified(tmp_path):
    scene = looks(shape=(12, 10), n_looks=1)
    scene[:, 5:] *= 9
    folder = write(tmp_path / "T3", scene, config=CONFIG.replace("\n4\n", "\n12\n").replace("\n5\n", "\n10\n"))
    averaged, labels = boxcar(read_polsar(folder), 3), np.repeat(["dark", "bright"], 5)
    model = RiemannianLVQ(max_epochs=0).fit(averaged[::2].reshape(-1, 3, 3), np.tile(labels, 6))
    assert np.mean(model.predict(averaged)[1::2] == labels) > 0.8


@pytest.mark.parametrize("name", ["T11", "T12_real", "T23_imag", "T33"])
def test_a_missing_plane_is_named(tmp_path, name):
    folder = write(tmp_path / "T3", looks())
    (folder / f"{name}.bin").unlink()
    with pytest.raises(FileNotFoundError, match=rf"T3/{name}\.bin is missing"):
        read_polsar(folder)


@pytest.mark.parametrize("n_bytes", [0, 79, 84])
def test_a_file_of_another_size_is_named(tmp_path, n_bytes):
    folder = write(tmp_path / "C3", looks(), "C")
    (folder / "C13_imag.bin").write_bytes(bytes(n_bytes))
    with pytest.raises(ValueError, match=rf"C13_imag\.bin has {n_bytes} bytes, but 4 x 5 numbers of 4 bytes take 80"):
        read_polsar(folder)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", r"config\.txt must state a whole number of at least 1 after Nrow, got nothing"),
        ("Nrow\n4\n", r"after Ncol, got nothing"),
        ("Nrow\n4\nNcol", r"after Ncol, got nothing"),
        ("Nrow\n0\nNcol\n5\n", r"after Nrow, got 0"),
        ("Nrow\n4.5\nNcol\n5\n", r"after Nrow, got 4\.5"),
        ("Nrow\n---------\nNcol\n5\n", r"after Nrow, got ---------"),
    ],
)
def test_a_config_without_a_size_is_named(tmp_path, config, message):
    with pytest.raises(ValueError, match=message):
        read_polsar(write(tmp_path / "T3", looks(), config=config))


def test_folders_of_another_kind_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is none"):
        read_polsar(tmp_path / "nowhere")
    with pytest.raises(
        FileNotFoundError, match=r"holds neither T11\.bin nor C11\.bin nor s11\.bin: pass the folder T3"
    ):
        read_polsar(tmp_path)
    folder = write(tmp_path / "T3", looks())
    (folder / "config.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"config\.txt is missing"):
        read_polsar(folder)
    with pytest.raises(ValueError, match=r"holds files of both C11\.bin and T11\.bin"):
        read_polsar(write(folder, looks(), "C"))
