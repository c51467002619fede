"""The domain of each sample, such as its subject or session: as groups, or in labels of the form "domain/label"."""

from typing import Any

import numpy as np

from rplvq.arrays._labels import check_groups, one_type
from rplvq.protocols import Array


def split_domains(y: Any, groups: Any = None) -> tuple[Array, Array]:
    """Return the labels, (N,) or (N, C), and the domains (N,) of samples, which are given by groups or in the labels.

    With groups (N,), ``y`` stays as it is. Without, it holds strings "domain/label", as ``encode_domains`` of pyRiemann
    makes them, which are split at their last "/". ValueError is raised if it does not, and at invalid groups.

    Examples
    --------
    >>> split_domains(["anna/left", "day/2/left"])
    (array(['left', 'left'], dtype='<U4'), array(['anna', 'day/2'], dtype='<U5'))
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
