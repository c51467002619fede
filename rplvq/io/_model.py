"""Models on disk: one .npz without pickle, sealed by a checksum, never half written.

A file is a zip archive that ``numpy.load(path)`` opens without pickle: arrays under readable names, and
``header``, UTF-8 JSON as bytes, with the format's version, the versions of the libraries, all
parameters and the rest of what the estimator carries (see :mod:`rplvq.io`). The archive's comment
holds the SHA-256 of all bytes before it (see :mod:`rplvq.io`).
"""

from __future__ import annotations

import os
import pathlib
import platform
import warnings
from typing import Any

import attrs
import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from rplvq.exceptions import ModelFileError
from rplvq.io._archive import UNREADABLE, open_archive, replace_file, seal_archive
from rplvq.io._codec import Packer, Unpacker
from rplvq.parts import is_saved_estimator, library_version, saved_estimator
from rplvq.training import Trainer

__all__ = ["load_model", "save_model"]


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file.

    The file is written beside its place under another name, flushed to the disk, then renamed: whoever
    crashes or loses power in the middle keeps the old file whole. A process that is killed can leave
    ``.rplvq-*.tmp`` behind.

    Parameters
    ----------
    estimator : RiemannianLVQ
        Fitted. Parts of your own must be known to :func:`register_part`.
    path : str or path-like
        Name of the file, taken as it is; an existing file is replaced.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is something else than a RiemannianLVQ, or of a subclass.
    ValueError
        If a parameter cannot be saved: names it and says what to do. Nothing is written then.
    OSError
        If the file cannot be written.

    Notes
    -----
    Saved are all parameters, all fitted attributes, the prototypes as points and as training carries them
    (for the affine-invariant metric their inverse factors), the place in the schedules, the state of the
    random generator and requests for metadata; also the latest samples of a stream, where partial_fit keeps some for
    rules of growth or for a class that turned up late. Not saved are callbacks, which are functions; a pymanopt
    manifold, of which only class and description are saved (see :func:`load_model`); and the types of
    array-likes that are not NumPy's, which come back as arrays.

    Examples
    --------
    >>> import os, tempfile
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.io import load_model, save_model
    >>> X, y = make_syn1(n_per_class=5, random_state=0)
    >>> model = RiemannianLVQ(max_epochs=2, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, os.path.join(folder, "model.npz"))
    ...     again = load_model(os.path.join(folder, "model.npz"))
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    if not is_saved_estimator(type(estimator)):
        raise TypeError(
            f"save_model writes a RiemannianLVQ, got {estimator!r}: other estimators, subclasses and "
            "pipelines can be saved by joblib or skops"
        )
    check_is_fitted(estimator)
    packer = Packer()
    header = _describe(estimator, packer)
    replace_file(pathlib.Path(os.path.realpath(path)), seal_archive(header, packer.arrays))


def load_model(path: str | os.PathLike[str], manifold: Any = None) -> Any:
    """Read an estimator that :func:`save_model` wrote.

    Predictions, probabilities and distances are those of the saved estimator, bit for bit on the same
    machine and libraries, and partial_fit goes on as it would have there: with the same random numbers,
    at the same place in the schedules.

    Parameters
    ----------
    path : str or path-like
        The file.
    manifold : pymanopt manifold or FromPymanopt, optional
        The manifold of a model that was trained on one of pymanopt's; only then.

    Returns
    -------
    RiemannianLVQ
        Fitted, with ``callbacks=()``.

    Raises
    ------
    ModelFileError
        If the file is no model, is damaged, was changed after it was written, has a newer format, or
        holds a part that is not known here, or if ``manifold`` is missing or not the one the model was
        trained on. It is a ValueError.
    ValueError
        If the model needs no ``manifold`` and one is given.
    OSError
        If the file cannot be read.

    Warns
    -----
    UserWarning
        If another major version of rplvq wrote the file: the same format can then mean other predictions.
        Versions of NumPy and scikit-learn are in the header for reference; they can change rounding and
        the random numbers of partial_fit, nothing else.

    Examples
    --------
    See :func:`save_model`. What a file holds can be looked at without this library:

    >>> import json, os, tempfile
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.io import save_model
    >>> model = RiemannianLVQ("euclidean_vectors", max_epochs=0).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, os.path.join(folder, "model.npz"))
    ...     with np.load(os.path.join(folder, "model.npz")) as arrays:
    ...         header, prototypes = json.loads(arrays["header"].tobytes()), arrays["prototypes_"]
    >>> header["parameters"]["max_epochs"], prototypes
    (0, array([[0.],
           [1.]]))
    """
    header, arrays = open_archive(path, pathlib.Path(path).read_bytes())
    unpacker = Unpacker(arrays, manifold)
    try:
        estimator = _restore(header, unpacker)
        written_by = str(header["versions"]["rplvq"])
    except UNREADABLE as error:
        raise ModelFileError(f"{os.fspath(path)}: {error or type(error).__name__}") from error
    if manifold is not None and not unpacker.manifold_used:
        raise ValueError(
            f"manifold={manifold}: the model of {os.fspath(path)} was not trained on a manifold of pymanopt's"
        )
    if written_by.split(".")[0] != library_version().split(".")[0]:
        warnings.warn(
            f"{os.fspath(path)} was written by rplvq {written_by}, this is {library_version()}: the "
            "model may predict otherwise here. Check it, or train it again",
            UserWarning,
            stacklevel=2,
        )
    return estimator


def _describe(estimator: Any, packer: Packer) -> dict[str, Any]:
    """Header of a fitted estimator; its arrays are left in ``packer``."""
    parameters = estimator.get_params(deep=False) | {"callbacks": ()}
    fitted = {name: value for name, value in vars(estimator).items() if name not in parameters}
    fitted.pop("_metadata_request", None)  # an object of scikit-learn's own; see _requests
    for name, value in fitted.items():
        if isinstance(value, Trainer):
            fitted[name] = attrs.evolve(value, callbacks=())
    return {
        "versions": {
            "rplvq": library_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
        "estimator": type(estimator).__qualname__,
        "parameters": {name: packer.pack(value, name) for name, value in parameters.items()},
        "fitted": {name: packer.pack(value, name) for name, value in fitted.items()},
        "requests": _requests(estimator),
    }


def _requests(estimator: Any) -> dict[str, dict[str, Any]]:
    """Metadata that the user asked for by set_fit_request and its like, by method."""
    routing = estimator.get_metadata_routing()
    wanted = {name: getattr(routing, name).requests for name in ("fit", "partial_fit", "score")}
    return {
        name: {key: alias for key, alias in requests.items() if alias is not None} for name, requests in wanted.items()
    }


def _restore(header: dict[str, Any], unpacker: Unpacker) -> Any:
    """Estimator of a header."""
    parameters = {name: unpacker.unpack(value) for name, value in header["parameters"].items()}
    cls = saved_estimator(header.get("estimator", "RiemannianLVQ"))
    estimator = cls(**parameters)
    for name, value in header["fitted"].items():
        if hasattr(cls, name):
            raise ValueError(f"the file sets {name!r}, which is no fitted attribute")
        setattr(estimator, name, unpacker.unpack(value))
    # Requests can only be set where routing is on; whether it is on here is the user's business.
    with sklearn.config_context(enable_metadata_routing=True):
        for name, requests in header["requests"].items():
            getattr(estimator, f"set_{name}_request")(**requests)
    check_is_fitted(estimator)
    return estimator
