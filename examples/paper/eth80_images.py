"""Read a folder of the ETH-80 images and compute their region covariances.

The data set (B. Leibe, B. Schiele, "Analyzing Appearance and Contour Based Methods for Object Categorization", CVPR
2003, doi:10.1109/CVPR.2003.1211497) shows 80 objects from 41 views each. Its folder of cropped images contains one
folder per object, with images such as ``apple1/apple1-066-063.png`` and outlines such as
``apple1/maps/apple1-066-063-map.png``.
"""

from __future__ import annotations

import os
import pathlib
import re
from typing import NamedTuple

import numpy as np

from rplvq.features import region_covariances
from rplvq.protocols import Array

__all__ = ["Descriptors", "load_folder"]

OBJECT = re.compile(r"([A-Za-z]+)[-_]?(\d+)")
VIEW = re.compile(r"(\d+)[-_](\d+)$")


class Descriptors(NamedTuple):
    """Region covariances of images.

    Parameters
    ----------
    X : ndarray of shape (N, 5, 5)
        Covariances of [x, y, I, abs Ix, abs Iy], in pixels and grey levels 0..255.
    y : ndarray of int of shape (N,)
        Index of the class in ``classes``.
    object : ndarray of int of shape (N,)
        Number of the object within its class.
    view : ndarray of int of shape (N, 2)
        The two angles in the name of the file, in degrees, or -1 if the name has none.
    classes : ndarray of str of shape (C,)
        Names, sorted.
    """

    X: Array
    y: Array
    object: Array
    view: Array
    classes: Array


def load_folder(folder: str | os.PathLike[str], *, masked: bool = False) -> Descriptors:
    """Read the images of all objects in a folder, and compute the covariance of the pixels of each image.

    Parameters
    ----------
    folder : path
        Contains one folder per object, named by class and number: apple1, apple2, ...
    masked : bool, default=False
        Whether to use only the pixels of the object, which are not black in ``maps/<name>-map.png``.

    Returns
    -------
    Descriptors
        Sorted by class, object and name of the file.

    Raises
    ------
    ValueError
        If there is no object, if an object has no image, or if an image and its map differ in size.
    FileNotFoundError
        If ``masked`` is true and an image has no map.
    """
    root = pathlib.Path(folder)
    objects = _objects(root)
    if not objects:
        raise ValueError(f"folder holds no objects: no folders named like 'apple1' with PNG files in {root}")
    classes = np.unique([name for name, _, _ in objects])
    parts: list[tuple[Array, ...]] = []
    for name, number, path in objects:
        files = sorted(path.glob("*.png"))
        if not files:
            raise ValueError(f"folder has an object without images: no PNG files in {path}")
        label = int(np.searchsorted(classes, name))
        angles = np.array([_view(file.stem) for file in files])
        parts.append((_covariances(files, masked), np.full(len(files), label), np.full(len(files), number), angles))
    X, y, numbers, views = (np.concatenate([part[i] for part in parts]) for i in range(4))
    return Descriptors(X, y, numbers, views, classes)


def _objects(root: pathlib.Path) -> list[tuple[str, int, pathlib.Path]]:
    """Class, number and folder of each object, sorted."""
    found = []
    for path in root.iterdir():
        match = OBJECT.fullmatch(path.name)
        if path.is_dir() and match:
            found.append((match[1].lower(), int(match[2]), path))
    return sorted(found)


def _covariances(files: list[pathlib.Path], masked: bool) -> Array:
    """Return the covariances (N, 5, 5) of the images of one object, whose sizes may differ."""
    return np.concatenate([_covariance(file, masked) for file in files])


def _covariance(file: pathlib.Path, masked: bool) -> Array:
    image = _grey(file)
    if not masked:
        return region_covariances(image[None], "grey5")
    outline = file.parent / "maps" / f"{file.stem}-map.png"
    if not outline.is_file():
        raise FileNotFoundError(f"{file} has no map {outline}: pass masked=False to use whole images")
    mask = _grey(outline) > 0
    if mask.shape != image.shape:
        raise ValueError(f"folder has an image and a map of different sizes, {image.shape} and {mask.shape}: {file}")
    return region_covariances(image[None], "grey5", masks=mask[None])


def _grey(file: pathlib.Path) -> Array:
    """Grey levels (h, w) 0..255; colors by 0.299 R + 0.587 G + 0.114 B, rounded."""
    from PIL import Image  # only needed for a folder of images

    with Image.open(file) as image:
        return np.asarray(image.convert("L"))


def _view(stem: str) -> tuple[int, int]:
    match = VIEW.search(stem)
    return (int(match[1]), int(match[2])) if match else (-1, -1)
