"""Models on disk: one .npz file without pickle, sealed by a checksum.

``numpy.load(path)`` opens the file without pickle. It holds arrays under readable names, and ``header``: JSON as UTF-8
bytes with the version of the format, the versions of the libraries, all parameters and all fitted attributes.
"""

import os
import warnings
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rplvq.arrays import as_rows, check_labels, hard_targets
from rplvq.exceptions import ModelFileError
from rplvq.io._archive import UNREADABLE, digest_of, open_archive, replace_file, seal_archive, versions
from rplvq.io._codec import Packer, Unpacker
from rplvq.parts import is_saved_estimator, library_version
from rplvq.protocols import ArrayLike


class ModelFile(NamedTuple):
    """The estimator of a model file, the versions that wrote it, and what save_model was told of the data."""

    estimator: BaseEstimator
    versions: dict[str, str]
    record: dict[str, object]


def save_model(
    estimator: BaseEstimator, path: str | os.PathLike[str], *, data: tuple[ArrayLike, Any] | None = None
) -> None:
    """Write a fitted estimator, or a whole pipeline, to one file.

    The file is written under a temporary name and then renamed, so that the old one is still complete after a crash or
    a power cut. A process that is killed can leave ``.rplvq-*.tmp`` behind, which the next save in that folder removes.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator or transformer of this library, or a Pipeline or StreamingPipeline of such steps. Parts and
        steps of your own, and steps of other libraries, are registered with :func:`rplvq.parts.register_part`.
    path : str or path-like
        Name of the file; no suffix is added, and an existing regular file is replaced.
    data : tuple of X and y, optional
        Samples (N, ...) and labels (N,) or (N, C) of the training. Their shape and classes, a SHA-256 of both and the
        date then go into the file, for :func:`rplvq.inspection.model_card`; the data do not. Without them the same
        estimator always makes the same bytes.

    Raises
    ------
    NotFittedError, TypeError
        If the estimator is not fitted; if it is none of this library, or of a subclass that is not registered.
    ValueError
        If a step or a parameter cannot be saved; the message names it and says what to do. Nothing is written.
    OSError
        If the file cannot be written, or if ``path`` is a folder, a device or a pipe; the message names ``path``.

    Notes
    -----
    Everything is saved, metadata requests and the samples that ``partial_fit`` keeps included, except callbacks, which
    are functions, and the ``memory`` of a pipeline, which is a folder of this machine. Of a pymanopt manifold only
    class and description are saved, see :func:`load_model`. Array-likes come back as NumPy arrays.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.pipeline import make_pipeline
    >>> from rplvq import Recenter, RiemannianLVQ, load_model, save_model
    >>> from rplvq.datasets import make_syn1
    >>> X, y = make_syn1(n_per_class=10, random_state=0)
    >>> pipeline = make_pipeline(Recenter(), RiemannianLVQ(max_epochs=1)).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "pipeline.npz")
    ...     save_model(pipeline, path, data=(X, y))
    ...     bool((load_model(path).predict(X) == pipeline.predict(X)).all())
    True
    """
    if not is_saved_estimator(type(estimator)):
        why = "save_model can save estimators of this library and pipelines of them"
        raise TypeError(f"{why} (no subclass unless registered by rplvq.parts.register_part), got {estimator!r}")
    check_is_fitted(estimator)
    packer = Packer()
    header = packer.pack_estimator(estimator)
    header["versions"] = versions() | {"scikit-learn": sklearn.__version__}
    if data is not None:
        header["record"] = _record(*data)
    replace_file(path, seal_archive(header, packer.arrays))


def _record(X: ArrayLike, y: ArrayLike) -> dict[str, object]:
    """Return what a file states of the data of the training: the date, the shape, the classes and a fingerprint."""
    samples = as_rows(X)
    classes, targets = check_labels(y, samples.shape[0])
    counts = np.bincount(hard_targets(targets), minlength=len(classes)).tolist()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "shape": list(samples.shape),
        "dtype": str(samples.dtype),
        "counts": [{"class": str(name), "samples": n} for name, n in zip(classes.tolist(), counts, strict=True)],
        "sha256": digest_of([samples, repr(classes.tolist()), targets]),
    }


def load_model(path: str | os.PathLike[str], manifold: object = None) -> BaseEstimator:
    """Return the fitted estimator that :func:`save_model` wrote, without its callbacks.

    Predictions, probabilities and distances equal those of the saved estimator, bit for bit on the same machine with
    the same libraries and compiled kernels. ``partial_fit`` continues as it would have there, with the same random
    numbers and schedules.

    Parameters
    ----------
    path : str or path-like
        The file.
    manifold : pymanopt manifold or FromPymanopt, optional
        Required if the model was trained on a pymanopt manifold, and refused otherwise.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, was changed after it was written, has a newer format, holds a part that
        is not known here, or holds what no fit leaves behind, such as labels that disagree; if a step answers otherwise
        than when it was saved; also if ``manifold`` is missing or differs from that of the model. It is a ValueError.
    ValueError, OSError
        If the model needs no ``manifold`` and one is given; if the file cannot be read.

    Warns
    -----
    UserWarning
        If another major version of rplvq wrote the file, because predictions may then differ, or another version whose
        answers differ. Other versions of NumPy and scikit-learn can only change rounding and random numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq import RiemannianLVQ, load_model, save_model
    >>> model = RiemannianLVQ("euclidean_vectors", max_epochs=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     save_model(model, path)
    ...     load_model(path).prototypes_.tolist()
    [[0.0], [1.0]]
    """
    return read_model(path, manifold).estimator


def read_model(path: str | os.PathLike[str], manifold: object = None) -> ModelFile:
    """Read a model file with what it states beside the estimator; arguments and errors are those of load_model."""
    header, arrays = open_archive(path)
    name = os.fspath(path)
    unpacker = Unpacker(arrays, manifold)
    try:
        estimator = unpacker.unpack_estimator(header)
        check_is_fitted(estimator)
        written_by = dict(header["versions"])
        record = dict(header.get("record", {}))
        version = str(written_by["rplvq"])
    except UNREADABLE as error:
        raise ModelFileError(f"{name}: {error or type(error).__name__}") from error
    changes = "; ".join(unpacker.deviations)
    if changes and version == library_version():
        raise ModelFileError(f"{name}: {changes} from those when it was saved: the file was changed. Save it again")
    if manifold is not None and not unpacker.manifold_used:
        raise ValueError(f"manifold={manifold}: the model of {name} was not trained on a pymanopt manifold: omit it")
    if changes or version.split(".")[0] != library_version().split(".")[0]:
        differs = f"{name} was written by rplvq {version}, this is {library_version()}"
        warnings.warn(f"{differs}: the model may predict otherwise here. Check it, or train it again", stacklevel=3)
    return ModelFile(estimator, written_by, record)
