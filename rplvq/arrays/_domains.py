"""The domain of each sample, such as its subject or session: as groups, or in labels of the form "domain/label"."""

from typing import Any

import numpy as np

from rplvq.arrays._labels import check_groups, one_type
from rplvq.protocols import Array


def split_domains(y: Any, groups: Any = None) -> tuple[Array, Array]:
    """Return the labels and the domains of samples, which are given by groups or in the labels.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, C)
        Labels, if groups are given. Otherwise strings "domain/label", as ``encode_domains`` of pyRiemann makes them. A
        string is split at its last "/", so that a domain may contain more of them.
    groups : array-like of shape (N,), optional
        Domain of each sample, of any sortable type.

    Returns
    -------
    labels : ndarray of shape (N,) or (N, C)
        ``y`` itself if groups are given; otherwise strings.
    domains : ndarray of shape (N,)
        Domain of each sample.

    Raises
    ------
    ValueError
        If there are no groups and ``y`` does not hold one "domain/label" per sample; if groups have another length, are
        missing or of mixed types.

    Examples
    --------
    >>> split_domains(["anna/left", "anna/right", "day/2/left"])
    (array(['left', 'right', 'left'], dtype='<U5'), array(['anna', 'anna', 'day/2'], dtype='<U5'))
    >>> split_domains([0, 1], groups=["anna", "ben"])
    (array([0, 1]), array(['anna', 'ben'], dtype='<U4'))
    """
    labels = one_type(y, "y")
    if groups is not None:
        return labels, check_groups(groups, len(labels) if labels.ndim else 1)
    remedy = 'pass the domain of each sample as groups, or labels of the form "domain/label"'
    if labels.ndim != 1 or labels.dtype.kind != "U":
        raise ValueError(f"groups is None, and y of dtype {labels.dtype} and shape {labels.shape} names none: {remedy}")
    pairs = [label.rpartition("/")[::2] for label in labels.tolist()]
    for index, pair in enumerate(pairs):
        if not all(pair):
            raise ValueError(f"groups is None, and y[{index}] is {labels.tolist()[index]!r}: {remedy}")
    domains, names = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(names, dtype=str), np.array(domains, dtype=str)
