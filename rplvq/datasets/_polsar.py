"""Scenes of polarimetric radar, as the program PolSARpro stores them."""

import os
from pathlib import Path

import numpy as np

from rplvq.protocols import Array

PLANES = ("11", "12_real", "12_imag", "13_real", "13_imag", "22", "23_real", "23_imag", "33")
"""Names of the nine files of a Hermitian 3 x 3 matrix, after the letter T or C and without ".bin"."""


def read_polsar(folder: str | os.PathLike[str]) -> Array:
    r"""Read the coherency or covariance matrices of a polarimetric radar scene from a folder of PolSARpro.

    Parameters
    ----------
    folder : path-like
        A folder T3 or C3. It holds nine files of float32 numbers, little-endian, row by row and without a header:
        ``T11.bin``, ``T12_real.bin``, ``T12_imag.bin`` ... ``T33.bin`` (or ``C11.bin`` ...), and ``config.txt``, which
        states the numbers of rows and columns after the lines ``Nrow`` and ``Ncol``.

    Returns
    -------
    ndarray of complex64 of shape (rows, columns, 3, 3)
        One Hermitian matrix per pixel, in the units of the files.

    Raises
    ------
    FileNotFoundError
        If the folder or one of the files is missing; the message names it.
    ValueError
        If the folder holds both T3 and C3, if ``config.txt`` states no size, or if a file has another size. The message
        names the file.

    Notes
    -----
    The numbers are not checked here; :func:`rplvq.features.boxcar` and the classifier do so. A single look is a
    matrix of rank one, and rounding to float32 can make small eigenvalues negative. Average first. If the classifier
    still refuses a pixel, :func:`rplvq.features.shrink` adds a little of the identity; it takes
    ``scene.reshape(-1, 3, 3)``.

    References
    ----------
    PolSARpro, the Polarimetric SAR Data Processing and Educational Tool of ESA.
    https://step.esa.int/main/toolboxes/polsarpro-v6-0-biomass-edition-toolbox/

    Examples
    --------
    A folder of two pixels whose matrices are the identity:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from rplvq.datasets import read_polsar
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.txt").write_text("Nrow\n1\n---------\nNcol\n2\n")
    ...     for i in range(1, 4):
    ...         np.ones(2, "<f4").tofile(f"{folder}/T{i}{i}.bin")
    ...         for j in range(i + 1, 4):
    ...             for part in ("real", "imag"):
    ...                 np.zeros(2, "<f4").tofile(f"{folder}/T{i}{j}_{part}.bin")
    ...     scene = read_polsar(folder)
    >>> scene.shape, bool((scene == np.eye(3)).all())
    ((1, 2, 3, 3), True)
    """
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"folder must be a folder T3 or C3 of PolSARpro, but {path} is none")
    letter, shape = _letter(path), _size(path / "config.txt")
    planes = {name: _plane(path / f"{letter}{name}.bin", shape) for name in PLANES}
    scene = np.zeros((*shape, 3, 3), dtype=np.complex64)
    for i in range(3):
        scene[..., i, i] = planes[f"{i + 1}{i + 1}"]
        for j in range(i + 1, 3):
            name = f"{i + 1}{j + 1}"
            scene[..., i, j].real, scene[..., i, j].imag = planes[f"{name}_real"], planes[f"{name}_imag"]
            scene[..., j, i] = scene[..., i, j].conj()
    return scene


def _letter(path: Path) -> str:
    """Return "T" for a folder with coherency matrices or "C" for one with covariance matrices."""
    letters = [letter for letter in "TC" if any((path / f"{letter}{name}.bin").is_file() for name in PLANES)]
    if not letters:
        raise FileNotFoundError(f"{path} holds neither T11.bin nor C11.bin: pass the folder T3 or C3 itself")
    if len(letters) == 2:
        raise ValueError(f"{path} holds files of both T3 and C3: keep one of them")
    return letters[0]


def _size(path: Path) -> tuple[int, int]:
    """Return the numbers of rows and columns that config.txt states."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: it states the numbers of rows and columns after Nrow and Ncol")
    words = path.read_text(encoding="utf-8", errors="replace").split()
    found = []
    for name in ("Nrow", "Ncol"):
        value = words[words.index(name) + 1] if name in words[:-1] else "nothing"
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"{path} must state a whole number of at least 1 after {name}, got {value}")
        found.append(int(value))
    return found[0], found[1]


def _plane(path: Path, shape: tuple[int, int]) -> Array:
    """Read one file of float32 numbers as a plane (rows, columns)."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: a scene has the nine files {path.name[0]}11.bin ... 33.bin")
    wanted, found = 4 * shape[0] * shape[1], path.stat().st_size
    if found != wanted:
        raise ValueError(
            f"{path} has {found} bytes, but {shape[0]} x {shape[1]} numbers of 4 bytes take {wanted}: "
            "it is incomplete, or config.txt belongs to another scene"
        )
    return np.fromfile(path, dtype="<f4").reshape(shape)
