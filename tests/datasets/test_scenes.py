"""Scenes of every kind, in blocks, with a georeference, and maps of them from Python and from the command line."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline

from rplvq import Recenter, RejectOption, RiemannianLVQ, save_model
from rplvq.cli import main
from rplvq.datasets import PolsarScene, classify_scene, read_polsar
from rplvq.features import boxcar
from tests.commands import fails

rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed: it is in the extra radar")

SHAPE = (24, 10)
PLACE = {"crs": "EPSG:32610", "transform": rasterio.Affine(10.0, 0.0, 500000.0, 0.0, -12.0, 4180000.0)}


def looks(n, seed=0, shape=SHAPE):
    """Two kinds of ground: bright pixels at the right, whose last channel is stronger."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(*shape, n, 6)) + 1j * rng.normal(size=(*shape, n, 6))
    vectors[:, shape[1] // 2 :, -1] *= 4
    scene = vectors @ vectors.conj().swapaxes(-1, -2) / 6
    return (0.5 * (scene + scene.conj().swapaxes(-1, -2))).astype(np.complex64)


def planes(scene, letter):
    found = {}
    for i in range(scene.shape[-1]):
        found[f"{letter}{i + 1}{i + 1}"] = scene[..., i, i].real
        for j in range(i + 1, scene.shape[-1]):
            found[f"{letter}{i + 1}{j + 1}_real"] = scene[..., i, j].real
            found[f"{letter}{i + 1}{j + 1}_imag"] = scene[..., i, j].imag
    return found


def write(folder, named, suffix=".bin", place=None):
    """Write planes by rasterio: .bin with the header of ENVI and config.txt, or .tif."""
    folder.mkdir(exist_ok=True)
    for name, plane in named.items():
        profile = {"height": plane.shape[0], "width": plane.shape[1], "count": 1, "dtype": plane.dtype} | (
            place or PLACE
        )
        driver = {".bin": "ENVI", ".tif": "GTiff"}[suffix]
        with rasterio.open(folder / f"{name}{suffix}", "w", driver=driver, **profile) as file:
            file.write(plane, 1)
    if suffix == ".bin":
        (folder / "config.txt").write_text(f"Nrow\n{plane.shape[0]}\n---------\nNcol\n{plane.shape[1]}\n")
    return folder


def pixels_and_labels(scene):
    labels = np.where(np.arange(scene.shape[1]) < scene.shape[1] // 2, "dark", "bright")
    n = scene.n
    return scene.read().reshape(-1, n, n), np.broadcast_to(labels, scene.shape).ravel()


@pytest.fixture
def scene(tmp_path):
    return PolsarScene(write(tmp_path / "T3", planes(looks(3), "T")), window=3)


@pytest.fixture
def model(scene):
    return RiemannianLVQ(max_epochs=0).fit(*pixels_and_labels(scene))


@pytest.mark.parametrize("suffix", [".bin", ".tif"])
@pytest.mark.parametrize("kind", ["C2", "T2", "C3", "T3", "C4", "T4"])
def test_every_kind_is_read_in_any_rows(tmp_path, kind, suffix):
    expected = looks(int(kind[1]))
    scene = PolsarScene(write(tmp_path / kind, planes(expected, kind[0]), suffix))
    assert (scene.n, scene.shape) == (int(kind[1]), SHAPE)
    assert_array_equal(scene.read(), expected)
    assert_array_equal(scene.read(3, 7), expected[3:7])
    assert scene.read(7, 7).shape == (0, SHAPE[1], scene.n, scene.n)
    assert_array_equal(read_polsar(tmp_path / kind), expected)


@pytest.mark.parametrize("suffix", [".bin", ".tif"])
def test_a_scattering_matrix_becomes_the_coherency_matrix_of_its_looks(tmp_path, suffix):
    rng = np.random.default_rng(0)
    s = (rng.normal(size=(4, 7, 6)) + 1j * rng.normal(size=(4, 7, 6))).astype(np.complex64)
    folder = write(tmp_path / "S2", dict(zip(("s11", "s12", "s21", "s22"), s, strict=True)), suffix)
    k = np.stack([s[0] + s[3], s[0] - s[3], s[1] + s[2]], axis=-1) / np.sqrt(2)
    single = k[..., :, None] * k[..., None, :].conj()
    assert_allclose(read_polsar(folder), single, rtol=1e-5, atol=1e-6)
    scene = PolsarScene(folder, looks=(3, 2))
    assert scene.shape == (2, 3)
    expected = [[single[3 * r : 3 * r + 3, 2 * c : 2 * c + 2].mean(axis=(0, 1)) for c in range(3)] for r in range(2)]
    assert_allclose(scene.read(), expected, rtol=1e-4, atol=1e-5)
    assert_array_equal(scene.read(1, 2), scene.read()[1:])
    assert scene.georeference()["transform"].almost_equals(rasterio.Affine(20.0, 0, 500000.0, 0, -36.0, 4180000.0))


def test_blocks_are_parts_of_the_average_of_the_whole_scene(scene, monkeypatch):
    expected = boxcar(looks(3), 3)
    assert_array_equal(scene.read(), expected)
    monkeypatch.setattr("rplvq.arrays._samples.BUDGET_BYTES", 5 * 64 * SHAPE[1] * 9)
    blocks = list(scene.blocks())
    assert [start for start, _ in blocks] == [0, 5, 10, 15, 20]
    assert_array_equal(np.concatenate([block for _, block in blocks]), expected)


def test_averages_leave_out_pixels_without_data(tmp_path):
    source = looks(2)
    named = planes(source, "C")
    named["C11"][2, 3] = np.nan
    for plane in named.values():
        plane[:, :2] = 0
    averaged = PolsarScene(write(tmp_path / "C2", named), window=3).read()
    assert (averaged[:, :2] == 0).all()
    assert (averaged[2, 3] == 0).all()
    assert_allclose(averaged[8, 2], source[7:10, 2:4].mean(axis=(0, 1)), rtol=1e-5)
    near = source[0:3, 3:6].reshape(-1, 2, 2)  # the seventh is the pixel without data
    assert_allclose(averaged[1, 4], np.delete(near, 6, axis=0).mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("suffix", [".tif", ".bin"])
def test_a_map_has_the_place_the_colours_and_the_legend(tmp_path, scene, model, suffix):
    written = classify_scene(
        model, scene, tmp_path / f"map{suffix}", proba=True, novelty=True, names={"dark": "sea & sky"}
    )
    assert [path.name for path in written] == [f"map{key}{suffix}" for key in ("", "_probabilities", "_novelty")]
    bands = []
    for path in written:
        with rasterio.open(path) as file:
            assert file.crs == rasterio.CRS.from_string(PLACE["crs"])
            assert file.transform.almost_equals(PLACE["transform"])
            assert file.driver == {".tif": "GTiff", ".bin": "ENVI"}[suffix]
            bands.append((file.read(), file.descriptions, file.nodata))
    matrices = scene.read()
    assert_array_equal(model.classes_[bands[0][0][0] - 1], model.predict(matrices))
    assert_allclose(np.moveaxis(bands[1][0], 0, -1), model.predict_proba(matrices), rtol=1e-5)
    assert_allclose(bands[2][0][0], model.score_samples(matrices), rtol=1e-5)
    assert bands[0][2] == 0
    assert bands[1][1] == ("bright", "sea & sky")
    with rasterio.open(written[0]) as file:
        colors = file.colormap(1)
    assert len({colors[code] for code in range(4)}) == 4
    if suffix == ".tif":
        categories = [each.text for each in ElementTree.parse(f"{written[0]}.aux.xml").iter("Category")]
        assert categories == ["no data", "bright", "sea & sky", "rejected"]
    else:
        assert "class names = {no data, bright, sea & sky, rejected}" in written[0].with_suffix(".hdr").read_text()


@pytest.mark.parametrize("suffix", [".tif", ".bin"])
def test_gdal_knows_the_names_of_the_classes(tmp_path, scene, model, suffix):
    """A copy into the other format keeps what GDAL has read of the legend."""
    (written,) = classify_scene(model, scene, tmp_path / f"map{suffix}")
    shutil = pytest.importorskip("rasterio.shutil")
    if suffix == ".tif":
        shutil.copy(written, tmp_path / "copy.bin", driver="ENVI")
        found = (tmp_path / "copy.hdr").read_text().split("class names", 1)[1]
    else:
        shutil.copy(written, tmp_path / "copy.tif", driver="GTiff")
        found = (tmp_path / "copy.tif.aux.xml").read_text()
    assert all(name in found for name in ("no data", "bright", "dark", "rejected"))


def test_rejected_pixels_and_pixels_without_data_have_codes_of_their_own(tmp_path, scene):
    X, y = pixels_and_labels(scene)
    option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.8, cv=2).fit(X, y)
    named = planes(looks(3), "T")
    for plane in named.values():
        plane[:, 0] = 0
    scene = PolsarScene(write(tmp_path / "holes", named), window=3)
    written = classify_scene(option, scene, tmp_path / "map.tif", novelty=True, proba=True)
    codes, probabilities, novelty = (rasterio.open(path).read() for path in written)
    assert_array_equal(codes[0, :, 0], 0)
    labels = option.predict(scene.read()[:, 1:])
    assert_array_equal(codes[0, :, 1:] == 3, labels == "rejected")
    assert (codes == 3).any()
    assert np.isnan(novelty[0, :, 0]).all()
    assert np.isnan(probabilities[:, :, 0]).all()
    assert np.isfinite(novelty[0, :, 1:]).all()


def test_a_scene_without_georeference_gives_a_map_without_one(tmp_path, scene, model):
    for header in scene.folder.glob("*.hdr"):
        header.unlink()
    assert PolsarScene(scene.folder).georeference() == {}
    (written,) = classify_scene(model, PolsarScene(scene.folder, window=3), tmp_path / "map.tif")
    with pytest.warns(rasterio.errors.NotGeoreferencedWarning), rasterio.open(written) as file:
        assert file.crs is None


@pytest.mark.parametrize(("kind", "suffix"), [("T3", ".bin"), ("C2", ".bin"), ("T3", ".tif")])
def test_the_command_line_writes_the_map_of_python(tmp_path, capsys, kind, suffix):
    folder = write(tmp_path / kind, planes(looks(int(kind[1])), kind[0]), suffix)
    scene = PolsarScene(folder, window=3)
    model = RiemannianLVQ(max_epochs=0).fit(*pixels_and_labels(scene))
    model.save(tmp_path / "model.npz")
    (expected,) = classify_scene(model, scene, tmp_path / "expected.tif")
    out = str(tmp_path / "map.tif")
    assert (
        main(["predict", str(tmp_path / "model.npz"), "--data", str(folder), "--window", "3", "--out", out, "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["written"] == [out]
    with rasterio.open(out) as file, rasterio.open(expected) as other:
        assert_array_equal(file.read(), other.read())
        assert (file.crs, file.transform) == (other.crs, other.transform)
        assert file.transform.almost_equals(PLACE["transform"])


def test_the_command_line_rejects_pixels_on_request(tmp_path, scene, capsys):
    option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.8, cv=2).fit(*pixels_and_labels(scene))
    option.save(tmp_path / "model.npz")
    command = ["predict", str(tmp_path / "model.npz"), "--data", str(scene.folder), "--window", "3", "--novelty"]
    maps = []
    for k, more in enumerate(([], ["--reject"])):
        assert main([*command, "--out", str(tmp_path / f"{k}.tif"), *more]) == 0
        assert f"{k}_novelty.tif" in capsys.readouterr().out
        maps.append([rasterio.open(tmp_path / f"{k}{key}.tif").read(1) for key in ("", "_novelty")])
    assert set(np.unique(maps[0][0])) == {1, 2}
    assert_array_equal(maps[1][0] == 3, option.predict(scene.read()) == "rejected")
    for _, novelty in maps:
        assert_allclose(novelty, option.score_samples(scene.read()), rtol=1e-5)


def test_pixels_are_rejected_on_request_behind_a_pipeline_and_only_by_an_option(tmp_path, scene, capsys):
    X, y = pixels_and_labels(scene)
    option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.8, cv=2)
    save_model(make_pipeline(Recenter(), option).fit(X, y), tmp_path / "pipeline.npz")
    save_model(RiemannianLVQ(max_epochs=0).fit(X, y), tmp_path / "plain.npz")
    use = ["--data", str(scene.folder), "--window", "3", "--out", str(tmp_path / "map.tif")]
    for more, codes in (([], {1, 2}), (["--reject"], {1, 2, 3})):
        assert main(["predict", str(tmp_path / "pipeline.npz"), *use, *more]) == 0
        assert set(np.unique(rasterio.open(tmp_path / "map.tif").read(1))) == codes
    capsys.readouterr()
    assert "holds no reject option" in fails(capsys, ["predict", str(tmp_path / "plain.npz"), *use, "--reject"])


def test_planes_of_both_formats_give_the_same_map(tmp_path, scene, model):
    other = PolsarScene(write(tmp_path / "tif", planes(looks(3), "T"), ".tif"), window=3)
    maps = [classify_scene(model, each, tmp_path / f"{k}.tif")[0] for k, each in enumerate((scene, other))]
    assert maps[0].read_bytes() == maps[1].read_bytes()


def test_the_command_line_names_what_does_not_fit(tmp_path, capsys, scene, model):
    path = str(tmp_path / "model.npz")
    model.save(path)
    command = ["predict", path, "--data", str(scene.folder)]
    assert "--out must name a map" in fails(capsys, command)
    assert "must end in .tif or .bin" in fails(capsys, [*command, "--out", str(tmp_path / "map.csv")])
    np.save(tmp_path / "X.npy", scene.read()[0])
    assert "--looks are for" in fails(capsys, ["predict", path, "--data", str(tmp_path / "X.npy"), "--novelty"])
    (scene.folder / "T22.bin").unlink()
    assert "T22.bin is missing" in fails(capsys, [*command, "--out", str(tmp_path / "map.tif")])
    assert not (tmp_path / "map.tif").exists()


def test_a_pixel_that_is_no_point_is_named_by_its_place_and_nothing_is_written(tmp_path, scene, model):
    named = planes(looks(3), "T")
    named["T11"][7, 4] = -50
    folder = write(tmp_path / "bad", named)
    (tmp_path / "map.tif").write_text("an older map")
    with pytest.raises(ValueError, match=r"scene\[7, 4\]"):
        classify_scene(model, PolsarScene(folder), tmp_path / "map.tif")
    assert (tmp_path / "map.tif").read_text() == "an older map"
    assert not list(tmp_path.glob(".rplvq-*"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "T12_imag.tif").unlink(), r"T12_imag\.tif is missing: a scene T3 has 9"),
        (lambda folder: (folder / "T22.tif").write_bytes(b"II*\0 no image"), r"T22\.tif"),
        (lambda folder: write(folder, {"T23_real": np.ones((3, 5), "f4")}, ".tif"), r"T23_real\.tif has another size"),
        (lambda folder: write(folder, {"T33": np.ones(SHAPE, "c8")}, ".tif"), r"T33\.tif must hold one band of real"),
        (
            lambda folder: write(folder, {"T33": np.ones(SHAPE, "f4")}, ".tif", PLACE | {"crs": "EPSG:32611"}),
            r"T33\.tif has another size or georeference than T11\.tif",
        ),
        (lambda folder: (folder / "config.txt").write_text("Nrow 3 Ncol 5"), r"config\.txt states another size than"),
        (lambda folder: (folder / "C11.tif").write_bytes(b""), r"holds files of both C11\.tif and T11\.tif"),
        (lambda folder: (folder / "T11.bin").write_bytes(b""), r"holds files of both T11\.bin and T11\.tif"),
    ],
)
def test_damaged_folders_of_geotiff_are_named(tmp_path, damage, message):
    folder = write(tmp_path / "T3", planes(looks(3), "T"), ".tif")
    damage(folder)
    with pytest.raises((ValueError, OSError), match=message):
        PolsarScene(folder)


def test_a_geotiff_that_breaks_off_is_named_when_it_is_read(tmp_path, model):
    folder = write(tmp_path / "tif", planes(looks(3), "T"), ".tif")
    file = folder / "T13_real.tif"
    file.write_bytes(file.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"T13_real\.tif can't be read"):
        classify_scene(model, PolsarScene(folder), tmp_path / "map.tif")


@pytest.mark.parametrize(("old", "new"), [("byte order = 0", "byte order = 1"), ("data type = 4", "data type = 5")])
def test_headers_that_contradict_are_named(scene, old, new):
    header = scene.folder / "T12_real.hdr"
    header.write_text(header.read_text().replace(old, new))
    with pytest.raises(ValueError, match=rf"T12_real\.hdr states {new}, but it must be"):
        PolsarScene(scene.folder)


@pytest.mark.parametrize(
    "given", [{"window": 4}, {"window": 0}, {"looks": (0, 1)}, {"looks": (1, 2, 3)}, {"window": 1.0}]
)
def test_invalid_averages_are_named(scene, given):
    with pytest.raises(ValueError, match=r"(window|looks) must be"):
        PolsarScene(scene.folder, **given)


def test_without_rasterio_bin_files_are_read_and_the_rest_says_what_it_needs(tmp_path, scene, model, monkeypatch):
    folder = write(tmp_path / "tif", planes(looks(3), "T"), ".tif")
    monkeypatch.setitem(sys.modules, "rasterio", None)
    assert_array_equal(PolsarScene(scene.folder).read(), looks(3))
    with pytest.raises(ImportError, match=r"T11\.tif needs rasterio: pip install \"\.\[radar\]\" in the folder"):
        PolsarScene(folder)
    with pytest.raises(ImportError, match="needs rasterio"):
        classify_scene(model, scene, tmp_path / "map.tif")


def test_looks_beyond_the_scene_and_names_of_no_class_are_named(tmp_path, scene, model):
    with pytest.raises(ValueError, match=r"looks=\(25, 1\) is more than the 24 x 10 pixels"):
        PolsarScene(scene.folder, looks=(25, 1))
    with pytest.raises(ValueError, match="'water', which is none of the classes"):
        classify_scene(model, scene, tmp_path / "map.tif", names={"water": "sea"})
    before = (scene.folder / "T11.bin").read_bytes()
    with pytest.raises(ValueError, match="path must not be a file of the scene"):
        classify_scene(model, scene, scene.folder / "T11.bin")
    assert (scene.folder / "T11.bin").read_bytes() == before
    with pytest.raises(ValueError, match="another name"):
        classify_scene(model, scene, tmp_path / "map.tif", names={"dark": "bright"})


def test_the_scene_of_san_francisco(tmp_path, real_data):
    with np.load(real_data("polsar_sf_airsar_T3.npz"), allow_pickle=False) as data:
        names = [name.replace("_re", "_real").replace("_im", "_imag") for name in data["plane_names"].tolist()]
        rows = slice(300, 360)
        named = {name: plane[rows] for name, plane in zip(names, data["planes"], strict=True)}
        labels = data["labels"][rows]
    scene = PolsarScene(write(tmp_path / "T3", named), window=5)
    matrices = scene.read()
    assert_array_equal(matrices, boxcar(read_polsar(scene.folder), 5))
    train = np.zeros(labels.shape, dtype=bool)
    train[::7, ::7] = labels[::7, ::7] > 0
    model = RiemannianLVQ(max_epochs=0).fit(matrices[train], labels[train])
    (written,) = classify_scene(model, scene, tmp_path / "map.tif")
    with rasterio.open(written) as file:
        assert_array_equal(model.classes_[file.read(1) - 1], model.predict(matrices))
