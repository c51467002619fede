"""CIFAR-10 as region covariances; the images are downloaded once, by pooch."""

import os
import tarfile
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from sklearn.utils import Bunch

from rplvq.parts import require_count
from rplvq.preprocessing import region_covariances
from rplvq.protocols import Array

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
"""Of the 170 052 171 bytes, whose MD5 is c32a1d4ab5d03f1284b67883e8d87530 according to the authors' page."""
BATCHES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
FEATURE_NAMES = ("x", "y", "red", "green", "blue", "abs_dx", "abs_dy", "abs_dxx", "abs_dyy")
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
N_BYTES = 1 + 3 * 32 * 32
"""A record is the label and the planes R, G, B of 32 x 32 pixels, row by row."""


@overload
def fetch_cifar10_covariances(
    subset: Literal["train", "test"] = ...,
    *,
    n_per_class: int | None = ...,
    shrinkage: float = ...,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[True] = ...,
) -> tuple[Array, Array]: ...
@overload
def fetch_cifar10_covariances(
    subset: Literal["train", "test"] = ...,
    *,
    n_per_class: int | None = ...,
    shrinkage: float = ...,
    data_home: str | os.PathLike[str] | None = ...,
    return_X_y: Literal[False],
) -> Any: ...


def fetch_cifar10_covariances(
    subset: Literal["train", "test"] = "train",
    *,
    n_per_class: int | None = None,
    shrinkage: float = 1e-3,
    data_home: str | os.PathLike[str] | None = None,
    return_X_y: bool = True,
) -> Any:
    """Download the images of CIFAR-10 once, and compute 9x9 covariances of the features :func:`~rplvq.features.rgb9`.

    The archive (162 MB) is checked by its SHA-256 and stays in ``data_home``. This needs a network the first time, and
    pooch: ``pip install 'rplvq[data]'``.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        The 50000 training images, or the 10000 test images; the classes are equally frequent in both.
    n_per_class : int, optional
        Number of images per class, the first ones in the files. None takes all, which takes one or two milliseconds per
        image.
    shrinkage : float in [0, 1], default=1e-3
        Weight of the scaled identity, as for :func:`rplvq.features.region_covariances`. Without it, about one
        image in a hundred is singular and is refused by ``fit``: grey images, where R = G = B.
    data_home : path-like, optional
        Folder of the archive; by default pooch's cache folder for "rplvq". An archive that you put there yourself,
        named ``cifar-10-binary.tar.gz``, is checked and used.
    return_X_y : bool, default=True
        Whether to return (X, y), or a :class:`sklearn.utils.Bunch`.

    Returns
    -------
    X : ndarray of shape (N, 9, 9)
        Covariances of x, y (pixels), R, G, B (0 to 255), and of the absolute values of the first and second derivatives
        of the luminance.
    y : ndarray of int of shape (N,)
        Classes 0 to 9.

    Raises
    ------
    ImportError
        If pooch is not installed.
    OSError
        If the archive cannot be downloaded; the message says how to get it by hand.
    ValueError
        If an argument is invalid, or if the archive that was downloaded has another checksum.

    Notes
    -----
    With ``return_X_y=False``, the Bunch has X and y as ``data`` and ``target``, ``images`` (N, 32, 32, 3) of bytes,
    ``feature_names`` (9 strings), ``target_names`` (10 strings), and ``DESCR``, a description of the data set.

    References
    ----------
    A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", technical report, University of Toronto,
    2009. https://www.cs.toronto.edu/~kriz/cifar.html

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import fetch_cifar10_covariances
    >>> X, y = fetch_cifar10_covariances(n_per_class=200)  # doctest: +SKIP
    >>> model = RiemannianLVQ(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> model.score(*fetch_cifar10_covariances("test"))  # doctest: +SKIP
    """
    if subset not in BATCHES:
        raise ValueError(f"subset must be one of {list(BATCHES)}, got {subset!r}")
    if n_per_class is not None:
        require_count("n_per_class", n_per_class, 1)
    records = _records(_archive(data_home), BATCHES[subset])
    if n_per_class is not None:
        records = records[_first_of_each_class(records[:, 0], n_per_class)]
    y = records[:, 0].astype(int)
    images = np.moveaxis(records[:, 1:].reshape(-1, 3, 32, 32), 1, 3)
    X = region_covariances(images, "rgb9", shrinkage=shrinkage)
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        images=images,
        feature_names=list(FEATURE_NAMES),
        target_names=list(CLASSES),
        DESCR=(
            f"Region covariances {X.shape} of the features {', '.join(FEATURE_NAMES)}, with shrinkage {shrinkage}, of "
            f"CIFAR-10 ({subset}): photographs of 32 x 32 pixels of ten kinds of objects, from {URL}"
        ),
    )


def _archive(data_home: str | os.PathLike[str] | None) -> Path:
    """Return the path of the archive, which is downloaded unless it is there."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError("fetch_cifar10_covariances needs pooch: pip install 'rplvq[data]'") from error
    folder, name = Path(pooch.os_cache("rplvq") if data_home is None else data_home), URL.rsplit("/", 1)[1]
    try:
        return Path(pooch.retrieve(URL, f"sha256:{SHA256}", fname=name, path=folder))
    except OSError as error:
        raise OSError(
            f"{URL} could not be downloaded into {folder}: {error}. Without a network, put the file {name} of another "
            "machine there"
        ) from error


def _records(archive: Path, names: list[str]) -> Array:
    """Read the records (N, 3073) of some files of the archive; nothing else is unpacked."""
    with tarfile.open(archive, "r:gz") as tar:
        files = [tar.extractfile(f"cifar-10-batches-bin/{name}") for name in names]
        contents = [file.read() for file in files if file is not None]
    return np.concatenate([np.frombuffer(content, dtype=np.uint8).reshape(-1, N_BYTES) for content in contents])


def _first_of_each_class(labels: Array, count: int) -> Array:
    """Return the sorted indices of the first ``count`` labels (N,) of each class."""
    rows = [np.flatnonzero(labels == label) for label in range(len(CLASSES))]
    fewest = min(map(len, rows))
    if count > fewest:
        raise ValueError(f"n_per_class must be at most {fewest}, the number of images per class, got {count}")
    return np.sort(np.concatenate([indices[:count] for indices in rows]))
