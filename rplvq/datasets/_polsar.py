"""Scenes of polarimetric radar, as the programs PolSARpro and polsartools store them.

PolSARpro of ESA: https://step.esa.int/main/toolboxes/polsarpro-v6-0-biomass-edition-toolbox/
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import numpy as np

from rplvq.arrays import row_slices
from rplvq.datasets._planes import SCATTERING, common_size, complete_planes, header_of, opened, planes_in, read_rows
from rplvq.features import boxcar
from rplvq.parts import require_count
from rplvq.protocols import Array


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
