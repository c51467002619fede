"""Maps of radar scenes: classes, probabilities and novelty of every pixel, as GeoTIFF or in the format of ENVI."""

import colorsys
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from sklearn.base import BaseEstimator

from rplvq.datasets._polsar import PolsarScene, holds_data, opened
from rplvq.exceptions import PointError
from rplvq.protocols import Array

DRIVERS = {".tif": "GTiff", ".bin": "ENVI"}  # rasterio's name of a format, by the suffix of the file


def classify_scene(
    model: BaseEstimator,
    scene: PolsarScene,
    path: str | os.PathLike[str],
    *,
    proba: bool = False,
    novelty: bool = False,
    names: Mapping[object, str] | None = None,
) -> list[Path]:
    r"""Classify every pixel of a radar scene, block by block, and write a map with the georeference of the scene.

    Parameters
    ----------
    model : classifier
        Fitted to pixels of ``scene.read()`` or of a scene with the same averages, such as :class:`rplvq.RiemannianLVQ`.
        :class:`rplvq.RejectOption` leaves uncertain pixels without a class.
    scene : PolsarScene
        The scene.
    path : path-like
        File to write: ``.tif`` for GeoTIFF, or ``.bin`` for the format of ENVI with a header ``.hdr``. A pixel is 0
        without data, k for the class ``model.classes_[k - 1]``, and ``C + 1`` if it was rejected. Programs such as QGIS
        show the colours and the legend.
    proba : bool, default=False
        Also write ``model.predict_proba`` (float32, NaN without data) to a file NAME_probabilities, a band per class.
    novelty : bool, default=False
        Also write ``model.score_samples``, of which small values are unusual, to a file NAME_novelty.
    names : dict of label to str, optional
        Names of classes in the legend, by default the labels.

    Returns
    -------
    list of Path
        The files that hold numbers; headers and legends are beside them. They replace old ones when all are complete.

    Raises
    ------
    ImportError, ValueError
        If rasterio (extra ``radar``) is not installed; if the suffix is another one, if there are more than 254
        classes, if a name belongs to no class, if a file can't be read, or if a pixel is not positive definite. The
        message names the file, or the row and column of the pixel.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import PolsarScene, classify_scene
    >>> power = np.array([1, 1, 8, 8, 1, 8], "<f4")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.txt").write_text("Nrow\n2\nNcol\n3\n")
    ...     for name, values in {"C11": power, "C22": power, "C12_real": 0 * power, "C12_imag": 0 * power}.items():
    ...         values.tofile(f"{folder}/{name}.bin")
    ...     scene = PolsarScene(folder)
    ...     model = RiemannianLVQ(max_epochs=0).fit(scene.read().reshape(-1, 2, 2), power > 4)
    ...     (written,) = classify_scene(model, scene, f"{folder}/map.bin", names={False: "water", True: "land"})
    ...     np.fromfile(written, "u1").reshape(scene.shape)
    array([[1, 1, 2],
           [2, 1, 2]], dtype=uint8)
    """
    path = Path(path)
    if path.suffix not in DRIVERS:
        raise ValueError(f"path must end in {' or '.join(DRIVERS)}, got {os.fspath(path)!r}")
    if path.resolve() in [plane.resolve() for plane in scene.planes.values()]:
        raise ValueError(f"path must not be a file of the scene, got {os.fspath(path)!r}")
    legend = _legend(np.asarray(model.classes_).tolist(), names or {})
    bands = {"": ["class"]}
    if proba:
        bands["_probabilities"] = list(legend)[1:-1]
    if novelty:
        bands["_novelty"] = ["novelty"]
    with TemporaryDirectory(prefix=".rplvq-", dir=path.parent) as beside:
        made = Path(beside, path.name)
        with ExitStack() as stack:
            files = {key: stack.enter_context(_new(made, key, scene, titles)) for key, titles in bands.items()}
            for key, titles in bands.items():
                files[key].descriptions = titles
            if made.suffix == ".tif":  # GDAL must know the colours before any pixel
                files[""].write_colormap(1, dict(enumerate(legend.values())))
            for start, block in scene.blocks():
                rows = (start, start + len(block)), (0, scene.shape[1])
                for key, values in _judged(model, block, start, bands).items():
                    files[key].write(values, window=rows)
        _write_legend(made, legend)
        for file in Path(beside).iterdir():
            os.replace(file, path.with_name(file.name))
    return [path.with_stem(path.stem + key) for key in bands]


def _new(path: Path, key: str, scene: PolsarScene, titles: Sequence[str]) -> AbstractContextManager[Any]:
    """Open a new file of the shape and georeference of a scene, with one band per title."""
    driver = DRIVERS[path.suffix]
    rows, columns = scene.shape
    profile = {"driver": driver, "height": rows, "width": columns, "count": len(titles), **scene.georeference()}
    profile |= {"dtype": "float32", "nodata": np.nan} if key else {"dtype": "uint8", "nodata": 0}
    profile |= {"compress": "deflate", "bigtiff": "if_safer"} if driver == "GTiff" else {}
    return opened(path.with_stem(path.stem + key), "w", **profile)


def _judged(model: BaseEstimator, block: Array, start: int, bands: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Return the bands (n_bands, rows, columns) of a block of matrices whose first row is ``start`` in the scene."""
    known = holds_data(block)
    classes = np.asarray(model.classes_)
    result = {key: np.full((len(titles), *known.shape), np.nan, "f4") for key, titles in bands.items()}
    result[""] = np.zeros((1, *known.shape), "u1")  # bytes have no NaN, so that 0 stands for no data
    if not known.any():
        return result
    pixels = block[known]
    try:
        labels = np.asarray(model.predict(pixels))
    except PointError as error:
        row, column = np.argwhere(known)[error.index]
        raise error.renamed("scene").at((start + row, column)) from None
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)  # a reject label may sort behind all
    result[""][0, known] = np.where(classes[places] == labels, places + 1, len(classes) + 1)
    if "_probabilities" in bands:
        result["_probabilities"][:, known] = model.predict_proba(pixels).T
    if "_novelty" in bands:
        result["_novelty"][0, known] = model.score_samples(pixels)
    return result


def _legend(classes: list[object], names: Mapping[object, str]) -> dict[str, tuple[int, int, int]]:
    """Return the colours of the codes of the map by their names: no data, the classes, and rejected pixels."""
    if len(classes) > 254:
        raise ValueError(f"a map of bytes holds at most 254 classes, but the model has {len(classes)}")
    for label in names:
        if label not in classes:
            raise ValueError(f"names has the label {label!r}, which is none of the classes {classes}")
    legend = {"no data": (0, 0, 0)}
    for k, label in enumerate(classes):
        # Hues a golden section apart are distinct for any number of classes.
        red, green, blue = colorsys.hsv_to_rgb((0.55 + 0.618034 * k) % 1, 0.75, (0.9, 0.6)[k % 2])
        legend[str(names.get(label, label))] = round(255 * red), round(255 * green), round(255 * blue)
    legend["rejected"] = (187, 187, 187)
    if len(legend) != len(classes) + 2:
        raise ValueError(f"names must give each class another name, got {list(legend)[1:-1]}")
    return legend


def _write_legend(path: Path, legend: Mapping[str, tuple[int, int, int]]) -> None:
    """Write the legend where GDAL looks for it: in the header of ENVI, or beside a GeoTIFF."""
    if path.suffix == ".tif":
        listed = "".join(f"<Category>{escape(name)}</Category>" for name in legend)
        text = f"<CategoryNames>{listed}</CategoryNames>"
        text = f'<PAMDataset><PAMRasterBand band="1">{text}</PAMRasterBand></PAMDataset>\n'
        path.with_name(f"{path.name}.aux.xml").write_text(text, encoding="utf-8")
        return
    header = path.with_suffix(".hdr")
    text = header.read_text(encoding="utf-8").replace("ENVI Standard", "ENVI Classification")
    listed = ", ".join(name.translate({ord(sign): " " for sign in "{},\n"}) for name in legend)
    table = ", ".join(str(part) for color in legend.values() for part in color)
    text += f"classes = {len(legend)}\nclass names = {{{listed}}}\nclass lookup = {{{table}}}\n"
    header.write_text(text, encoding="utf-8")
