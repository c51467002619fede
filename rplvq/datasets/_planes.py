"""The files of a radar scene: which there are, whether they agree, and the numbers of some rows of one of them."""

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rplvq.protocols import Array

PLANE = re.compile(r"([CT][1-4][1-4](_real|_imag)?|s[12][12])\.(bin|tif)")
"""Files with an entry of a Hermitian matrix, or of a scattering matrix."""
SCATTERING = ("s11", "s12", "s21", "s22")


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
