"""Scenes of polarimetric radar, as the programs PolSARpro and polsartools store them, and their files.

PolSARpro of ESA: https://step.esa.int/main/toolboxes/polsarpro-v6-0-biomass-edition-toolbox/
"""

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import row_slices
from rplvq.features import boxcar
from rplvq.parts import require_count
from rplvq.protocols import Array

PLANE = re.compile(r"([CT][1-4][1-4](_real|_imag)?|s[12][12])\.(bin|tif)")
"""Files with an entry of a Hermitian matrix, or of a scattering matrix."""
SCATTERING = ("s11", "s12", "s21", "s22")


@attrs.frozen
class PolsarScene:
    r"""A radar scene in a folder of PolSARpro or polsartools, which is checked at once and read in blocks of rows.

    Parameters
    ----------
    folder : path-like
        A folder C2, T2, C3, T3, C4 or T4 holds the real planes of Hermitian matrices, such as ``T11``, ``T12_real``,
        ``T12_imag`` ... ``T33``. A folder S2 holds the complex planes ``s11``, ``s12``, ``s21`` and ``s22``. The files
        are ``.tif`` (GeoTIFF, which needs rasterio of the extra ``radar``), or ``.bin``: little-endian numbers of 32
        bits, or twice 32 for S2, row by row. Beside ``.bin`` files, ``config.txt`` states rows and columns after the
        lines ``Nrow`` and ``Ncol``, and ENVI headers ``.hdr`` may state the georeference.
    looks : (int, int), default=(1, 1)
        Rows and columns of the files that are averaged to one pixel (multi-looking).
    window : int, default=1
        Odd width of the moving average after that, see :func:`rplvq.features.boxcar`.

    Attributes
    ----------
    shape, n : (int, int) and int
        Rows and columns after multi-looking, and size of the matrices.

    Raises
    ------
    FileNotFoundError
        If the folder or one of the files is missing; the message names it.
    ValueError, ImportError
        If a parameter is invalid, if the folder holds two kinds of scene, or if a file or header states another size,
        place or type of number than the rest (the message names the file); if GeoTIFF need rasterio.

    Notes
    -----
    A scattering matrix S becomes ``k k^H`` of its Pauli vector ``k = (S11 + S22, S11 - S22, S12 + S21) / sqrt(2)``, the
    coherency matrix T3 of a monostatic radar. A single look has rank one, and rounding to float32 can make small
    eigenvalues negative: average first. If the classifier still refuses a pixel, :func:`rplvq.features.shrink` adds a
    little of the identity to ``scene.read().reshape(-1, n, n)``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rplvq.datasets import PolsarScene
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.txt").write_text("Nrow\n4\nNcol\n2\n")
    ...     for name, value in {"s11": 1, "s12": 0, "s21": 0, "s22": 1j}.items():
    ...         np.full(8, value, "<c8").tofile(f"{folder}/{name}.bin")
    ...     scene = PolsarScene(folder, looks=(2, 1))
    ...     scene.shape, scene.read(0, 1)[0, :, 0, 1].imag.round(3)  # of (S11 + S22) (S11 - S22)* / 2
    ((2, 2), array([1., 1.], dtype=float32))
    """

    folder: Path = attrs.field(converter=Path)
    looks: tuple[int, int] = attrs.field(default=(1, 1), converter=tuple)
    window: int = 1
    planes: Mapping[str, Path] = attrs.field(init=False, repr=False)
    n: int = attrs.field(init=False)
    shape: tuple[int, int] = attrs.field(init=False)
    columns: int = attrs.field(init=False, repr=False)  # of the files

    def __attrs_post_init__(self) -> None:
        for name, sizes in {"window": (self.window,), "looks": self.looks}.items():
            for size in sizes:
                require_count(name, size, 1)
        if self.window % 2 == 0 or len(self.looks) != 2:
            raise ValueError(f"window must be odd and looks two numbers, got window={self.window}, looks={self.looks}")
        planes = complete_planes(self.folder)
        rows, columns = common_size(planes)
        shape = rows // self.looks[0], columns // self.looks[1]
        if 0 in shape:
            raise ValueError(f"looks={self.looks} is more than the {rows} x {columns} pixels of {self.folder}")
        n = 3 if "s11" in planes else max(int(stem[1]) for stem in planes)
        for name, value in {"planes": planes, "columns": columns, "shape": shape, "n": n}.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def is_in(folder: str | os.PathLike[str]) -> bool:
        """Return whether a folder holds planes of a scene, be they complete or not."""
        return bool(planes_in(Path(folder)))

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """Return rows from ``start`` to before ``stop``, by default all: matrices (stop - start, columns, n, n).

        They are Hermitian and in the units of the files: complex64, or complex128 if ``window`` is above 1. Averages
        take rows beyond them, so that parts do not differ from the whole scene. Pixels that are 0 or not finite hold no
        data; averages over windows leave them out and make them 0.
        """
        first, last, _ = slice(start, stop).indices(self.shape[0])
        above = max(0, first - self.window // 2)
        block = self._looked(above, min(self.shape[0], max(first, last) + self.window // 2))
        if self.window == 1:
            return block
        known = holds_data(block)[..., None, None]
        shares = boxcar(known.astype(float), self.window)  # where all pixels have data, this divides by 1
        means = boxcar(np.where(known, block, 0), self.window) / np.where(known, shares, 1)
        return np.where(known, means, 0)[first - above : max(first, last) - above]

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Read the scene in blocks of bounded memory; each comes with its first row."""
        for rows in row_slices(self.shape[0], 64 * self.looks[0] * self.columns * self.n**2):
            yield rows.start, self.read(rows.start, rows.stop)

    def georeference(self) -> dict[str, object]:
        """Return "crs" and "transform" of the multi-looked scene for rasterio; empty if the files state none."""
        path = next(iter(self.planes.values()))
        if path.suffix == ".bin" and header_of(path) is None:
            return {}
        with opened(path) as file:
            a, b, x, d, e, y, *_ = file.transform
            if file.crs is None and file.transform.is_identity:
                return {}
            down, right = self.looks
            return {"crs": file.crs, "transform": type(file.transform)(a * right, b * down, x, d * right, e * down, y)}

    def _looked(self, start: int, stop: int) -> Array:
        """Return multi-looked matrices of some rows (stop - start, columns, n, n)."""
        rows = start * self.looks[0], stop * self.looks[0]
        planes = {stem: read_rows(path, rows, self.columns) for stem, path in self.planes.items()}
        if "s11" in planes:
            s11, s12, s21, s22 = (np.float32(0.5**0.5) * planes[stem] for stem in SCATTERING)
            pauli = s11 + s22, s11 - s22, s12 + s21
        letter = next(iter(planes))[0]
        result = np.empty((stop - start, self.shape[1], self.n, self.n), dtype=np.complex64)
        for i, j in zip(*np.triu_indices(self.n), strict=True):
            name = f"{letter}{i + 1}{j + 1}"
            if letter == "s":
                entry = pauli[i] * pauli[j].conj()
            else:
                entry = planes[name] if i == j else planes[f"{name}_real"] + 1j * planes[f"{name}_imag"]
            mean = self._mean(entry)
            result[..., j, i] = mean.conj()
            result[..., i, j] = mean
        return result

    def _mean(self, plane: Array) -> Array:
        """Average a plane over looks that do not overlap; an incomplete one at the right is left out."""
        whole = plane[:, : self.shape[1] * self.looks[1]]
        looks = whole.reshape(-1, self.looks[0], self.shape[1], self.looks[1])
        return np.asarray(looks.mean(axis=(1, 3)) if self.looks != (1, 1) else plane)


def read_polsar(folder: str | os.PathLike[str]) -> Array:
    r"""Return a whole radar scene (rows, columns, n, n), complex64 in the units of the files, as PolsarScene reads it.

    Parameters
    ----------
    folder : path-like
        A folder C2, T2, C3, T3, C4, T4 or S2, with the errors of :class:`PolsarScene`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rplvq.datasets import read_polsar
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.txt").write_text("Nrow\n1\n---------\nNcol\n2\n")
    ...     for name in ("C11", "C12_real", "C12_imag", "C22"):
    ...         np.ones(2, "<f4").tofile(f"{folder}/{name}.bin")
    ...     read_polsar(folder).shape
    (1, 2, 2, 2)
    """
    return PolsarScene(folder).read()


def holds_data(block: Array) -> Array:
    """Return which pixels (rows, columns) of a block of matrices have data: those that are finite and not zero."""
    return np.asarray(np.isfinite(block).all(axis=(-1, -2)) & (block != 0).any(axis=(-1, -2)))


def planes_in(path: Path) -> list[Path]:
    """Return the files of a folder that are planes of a scene."""
    return [file for file in sorted(path.glob("*.[bt]i[nf]")) if PLANE.fullmatch(file.name)]


def complete_planes(path: Path) -> dict[str, Path]:
    """Return all files of the scene in a folder, by names such as "T12_real"; an error names a missing one."""
    if not path.is_dir():
        raise FileNotFoundError(f"folder must be a folder such as T3 or C3 of PolSARpro, but {path} is none")
    if not (present := planes_in(path)):
        raise FileNotFoundError(f"{path} holds neither T11.bin nor C11.bin nor s11.bin: pass the folder T3 itself")
    for other in present:
        if (other.stem[0], other.suffix) != (present[0].stem[0], present[0].suffix):
            raise ValueError(f"{path} holds files of both {present[0].name} and {other.name}: keep one kind of scene")
    letter = present[0].stem[0]
    suffix = present[0].suffix
    n = max(2, *(int(digit) for file in present for digit in file.stem[1:3]))
    pairs = [(i, j) for i in range(1, n + 1) for j in range(i, n + 1)]
    hermitian = [f"{letter}{i}{j}{part}" for i, j in pairs for part in (("",) if i == j else ("_real", "_imag"))]
    planes = {stem: path / f"{stem}{suffix}" for stem in (SCATTERING if letter == "s" else hermitian)}
    for file in planes.values():
        if not file.is_file():
            raise FileNotFoundError(f"{file} is missing: a scene {letter.upper()}{n} has {len(planes)} such files")
    return planes


def common_size(planes: Mapping[str, Path]) -> tuple[int, int]:
    """Return the rows and columns on which config.txt and all files agree; an error names the one that does not."""
    first = next(iter(planes.values()))
    config = first.with_name("config.txt")
    if first.suffix == ".bin":
        size = _size_in(config)
        for file in planes.values():
            _check_raw(file, size)
        return size
    places = {}
    for stem, file in planes.items():
        with opened(file) as image:
            if image.count != 1 or ("complex" in image.dtypes[0]) != (stem in SCATTERING):
                wanted = f"one band of {'complex' if stem in SCATTERING else 'real'} numbers"
                raise ValueError(f"{file} must hold {wanted}, got {image.count} of {image.dtypes[0]}")
            places[stem] = image.shape, image.crs, image.transform
        if places[stem] != places[first.stem]:
            raise ValueError(f"{file} has another size or georeference than {first.name}: they are of different scenes")
    rows, columns = places[first.stem][0]
    if config.is_file() and _size_in(config) != (rows, columns):
        raise ValueError(f"{config} states another size than the {rows} x {columns} pixels of {first.name}")
    return rows, columns


def read_rows(path: Path, rows: tuple[int, int], columns: int) -> Array:
    """Read rows of a plane from the first to before the second: float32, or complex64 of a scattering matrix."""
    dtype = _dtype(path)
    if path.suffix == ".tif":
        with opened(path) as file:
            return np.asarray(file.read(1, window=(rows, (0, columns))), dtype=dtype)
    count = (rows[1] - rows[0]) * columns
    return np.fromfile(path, dtype, count=count, offset=rows[0] * columns * dtype.itemsize).reshape(-1, columns)


def header_of(path: Path) -> Path | None:
    """Return the header of ENVI beside a .bin file, if there is one."""
    return next(filter(Path.is_file, (path.with_suffix(".hdr"), path.with_suffix(".bin.hdr"))), None)


@contextmanager
def opened(path: Path, mode: str = "r", **profile: object) -> Iterator[Any]:
    """Open a file by rasterio; its errors become a ValueError that names the file."""
    try:
        rasterio, errors = (import_module(name) for name in ("rasterio", "rasterio.errors"))
    except ImportError as error:
        raise ImportError(f'{path.name} needs rasterio: pip install ".[radar]" in the folder of rplvq') from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NotGeoreferencedWarning)  # many radar scenes have no georeference
            file = rasterio.open(path, mode, **profile)
        with file:
            yield file
    except errors.RasterioError as error:
        raise ValueError(f"{path} can't be {'read' if mode == 'r' else 'written'}: {error}") from error


def _dtype(path: Path) -> np.dtype[np.generic]:
    return np.dtype("<c8" if path.stem in SCATTERING else "<f4")


def _size_in(config: Path) -> tuple[int, int]:
    if not config.is_file():
        raise FileNotFoundError(f"{config} is missing: it states the numbers of rows and columns after Nrow and Ncol")
    words = config.read_text(encoding="utf-8", errors="replace").split()
    sizes = []
    for name in ("Nrow", "Ncol"):
        value = words[words.index(name) + 1] if name in words[:-1] else "nothing"
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"{config} must state a whole number of at least 1 after {name}, got {value}")
        sizes.append(int(value))
    return sizes[0], sizes[1]


def _check_raw(path: Path, shape: tuple[int, int]) -> None:
    """Check the size of a .bin file, and that its header, if it has one, describes such a file."""
    width = _dtype(path).itemsize
    needed = width * shape[0] * shape[1]
    present = path.stat().st_size
    if present != needed:
        numbers = f"{shape[0]} x {shape[1]} numbers of {width} bytes take {needed}"
        why = "it is incomplete, or config.txt belongs to another scene"
        raise ValueError(f"{path} has {present} bytes, but {numbers}: {why}")
    header = header_of(path)
    text = "" if header is None else header.read_text(encoding="utf-8", errors="replace")
    stated = dict(re.findall(r"(?m)^\s*([a-z ]+?)\s*=\s*(\d+)\s*$", text))
    right = {"lines": shape[0], "samples": shape[1], "bands": 1, "header offset": 0, "byte order": 0}
    for key, value in (right | {"data type": 4 if width == 4 else 6}).items():
        if int(stated.get(key, value)) != value:
            raise ValueError(f"{header} states {key} = {stated[key]}, but it must be {value} for {path.name}")
