"""A model at work: how many samples it rejects or does not know, window by window."""

from typing import Any, NamedTuple

import numpy as np

from rplvq.inspection._novelty import ORDINARY
from rplvq.inspection._rejection import RejectOption
from rplvq.parts import require_count
from rplvq.protocols import Array


class Watch(NamedTuple):
    """Shares of samples in W windows of a stream, and those that held-out samples promised.

    Parameters
    ----------
    ends, rejected, novel : ndarray of shape (W,)
        Number of samples up to the end of each window, and shares in the window of samples without a label, and of
        samples beyond the limit of their class.
    promised_rejected, promised_novel : float
        The shares to expect: 1 - coverage, NaN if the option was given a threshold instead; and 0.05.
    """

    ends: Array
    rejected: Array
    novel: Array
    promised_rejected: float
    promised_novel: float


def watch(option: RejectOption, X: Any, window: int = 50, **params: Any) -> Watch:
    """Compare the shares of rejected and of novel samples of a stream with what held-out samples promised.

    Both need no labels. If the data stay as they were in training, the share of a window differs from a promised share
    p by about ``sqrt(p (1 - p) / window)``. Larger shares, window after window, say that the data have drifted.

    Parameters
    ----------
    option : RejectOption
        Fitted, with limits of distances: its criterion is "combined" or "distance"; ValueError is raised otherwise.
    X : array-like of shape (N, ...)
        Samples in their order, at least ``window``. After a pipeline, pass ``pipeline[:-1].transform(X)``.
    window : int, default=50
        Number of samples per window; those after the last whole window are left out.
    **params
        Metadata, as for :meth:`rplvq.RejectOption.predict`.

    Examples
    --------
    >>> from rplvq import RejectOption, RiemannianLVQ
    >>> from rplvq.datasets import make_syn1
    >>> from rplvq.inspection import watch
    >>> X, y = make_syn1(n_per_class=30, random_state=0)
    >>> option = RejectOption(RiemannianLVQ(max_epochs=0), coverage=0.9).fit(X[::2], y[::2])
    >>> stream = X[1::2].copy()
    >>> stream[30:] *= 5.0  # an amplifier has changed
    >>> seen = watch(option, stream, window=30)
    >>> seen.promised_novel, seen.novel.round(2)
    (0.05, array([0.03, 1.  ]))
    """
    require_count("window", window, 1)
    novel = option.score_samples(X, **params).ravel() < -1
    rejected = option.certainty(X, **params).ravel() < option.threshold_
    n_windows = len(novel) // window
    if n_windows == 0:
        raise ValueError(f"X holds {len(novel)} samples, fewer than window={window}: lower window")
    ends = window * np.arange(1, n_windows + 1)
    lost, far = (part[: ends[-1]].reshape(-1, window).mean(axis=1) for part in (rejected, novel))
    promised = np.nan if option.coverage is None else 1 - option.coverage
    return Watch(ends, lost, far, promised, round(1 - ORDINARY, 12))
