"""Models on disk: one .npz file without pickle, sealed by a checksum.

``numpy.load(path)`` opens the file without pickle. It holds arrays under readable names, and ``header``: JSON as UTF-8
bytes with the version of the format, the versions of the libraries, all parameters and all fitted attributes.
"""

import os
import warnings
from typing import Any

import attrs
import sklearn
from sklearn.utils.validation import check_is_fitted

from rplvq.exceptions import ModelFileError
from rplvq.io._archive import UNREADABLE, open_archive, seal_archive, versions
from rplvq.io._codec import Packer, Unpacker
from rplvq.io._files import replace_file
from rplvq.io._invariants import require_fitted
from rplvq.io._older import with_choice, with_metric
from rplvq.parts import is_saved_estimator, library_version, saved_estimator
from rplvq.training import Trainer


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file.

    The file is written under a temporary name, flushed to the disk, and then renamed. After a crash or a power cut the
    old file is therefore still complete. A process that is killed can leave a file ``.rplvq-*.tmp`` behind, which the
    next save into that folder removes.

    Parameters
    ----------
    estimator : RiemannianLVQ
        A fitted estimator. Register parts of your own with :func:`rplvq.parts.register_part`.
    path : str or path-like
        Name of the file; no suffix is added, and an existing regular file is replaced.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If it is not a RiemannianLVQ; subclasses are refused, too.
    ValueError
        If a parameter cannot be saved; the message names it and says what to do. Nothing is written.
    OSError
        If the file cannot be written, or if ``path`` is a folder, a device or a pipe; the message names ``path``.

    Notes
    -----
    Saved are all parameters, all fitted attributes, the state of training (prototypes in the manifold's internal
    representation, schedules, epoch, random generator), the samples that ``partial_fit`` keeps for growth or for late
    classes, and metadata requests. Not saved are callbacks, because they are functions. Of a pymanopt manifold only
    class and description are saved, see :func:`load_model`. Array-likes that are not NumPy arrays come back as arrays.

    Examples
    --------
    See :meth:`rplvq.RiemannianLVQ.save`.
    """
    if not is_saved_estimator(type(estimator)):
        why = "save_model can only save a RiemannianLVQ (no subclass or pipeline)"
        raise TypeError(f"{why}, got {estimator!r}: use joblib or skops for others")
    check_is_fitted(estimator)
    parameters = estimator.get_params(deep=False) | {"callbacks": ()}
    fitted = {name: value for name, value in vars(estimator).items() if name not in parameters}
    fitted.pop("_metadata_request", None)  # an object of scikit-learn; "requests" has its content
    for name, value in fitted.items():
        if isinstance(value, Trainer):
            fitted[name] = attrs.evolve(value, callbacks=())
    packer, routing = Packer(), estimator.get_metadata_routing()
    asked = [(method, getattr(routing, method).requests.items()) for method in ("fit", "partial_fit", "score")]
    header = {
        "versions": versions() | {"scikit-learn": sklearn.__version__},
        "estimator": type(estimator).__qualname__,
        "parameters": {name: packer.pack(value, name) for name, value in parameters.items()},
        "fitted": {name: packer.pack(value, name) for name, value in fitted.items()},
        "requests": {method: {key: alias for key, alias in pairs if alias is not None} for method, pairs in asked},
    }
    replace_file(path, seal_archive(header, packer.arrays))


def load_model(path: str | os.PathLike[str], manifold: Any = None) -> Any:
    """Read an estimator that :func:`save_model` wrote.

    Predictions, probabilities and distances equal those of the saved estimator, bit for bit on the same machine with
    the same libraries and compiled kernels. ``partial_fit`` continues as it would have there, with the same random
    numbers and schedules.

    Parameters
    ----------
    path : str or path-like
        The file.
    manifold : pymanopt manifold or FromPymanopt, optional
        Required if the model was trained on a pymanopt manifold, and refused otherwise.

    Returns
    -------
    RiemannianLVQ
        Fitted, with ``callbacks=()``.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, was changed after it was written, has a newer format, holds a part that
        is not known here, or holds what no fit leaves behind, such as labels that disagree; also if ``manifold`` is
        missing or differs from that of the model. It is a ValueError.
    ValueError
        If the model needs no ``manifold`` and one is given.
    OSError
        If the file cannot be read.

    Warns
    -----
    UserWarning
        If another major version of rplvq wrote the file, because predictions may then differ. The header also states
        the versions of NumPy and scikit-learn; these can only change rounding and the random numbers of
        ``partial_fit``.

    Examples
    --------
    See :meth:`rplvq.RiemannianLVQ.save`. NumPy alone can show what a file holds:

    >>> import json, os, tempfile
    >>> import numpy as np
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
    header, arrays = open_archive(path)
    name, unpacker = os.fspath(path), Unpacker(arrays, manifold)
    try:
        estimator = _restore(header, unpacker)
        written_by = str(header["versions"]["rplvq"])
    except UNREADABLE as error:
        raise ModelFileError(f"{name}: {error or type(error).__name__}") from error
    if manifold is not None and not unpacker.manifold_used:
        raise ValueError(f"manifold={manifold}: the model of {name} was not trained on a pymanopt manifold: omit it")
    if written_by.split(".")[0] != library_version().split(".")[0]:
        differs = f"{name} was written by rplvq {written_by}, this is {library_version()}"
        warnings.warn(f"{differs}: the model may predict otherwise here. Check it, or train it again", stacklevel=2)
    return estimator


def _restore(header: dict[str, Any], unpacker: Unpacker) -> Any:
    """Return the estimator that a header describes."""
    parameters = with_metric({name: unpacker.unpack(value) for name, value in header["parameters"].items()})
    cls = saved_estimator(header.get("estimator", "RiemannianLVQ"))
    estimator = cls(**parameters)
    fitted = {name: unpacker.unpack(value) for name, value in header["fitted"].items()}
    for name, value in with_choice(fitted, "trials_", "choice_").items():
        if hasattr(cls, name):
            raise ValueError(f"the file sets {name!r}, which is no fitted attribute")
        setattr(estimator, name, value)
    # scikit-learn sets requests only while metadata routing is enabled, so it is enabled here for a moment.
    with sklearn.config_context(enable_metadata_routing=True):
        for name, requests in header["requests"].items():
            getattr(estimator, f"set_{name}_request")(**requests)
    require_fitted(estimator)
    return estimator
