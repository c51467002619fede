"""The candidates for a sigma2 that ``fit`` chooses by held-out samples; ``rplvq.training`` tries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from rplvq.parts import library_part
from rplvq.schedules._schedules import Constant, resolve

RULES = ("blended", "half_median", "grid", "gentle", "annealed", "untrained")
"""Candidates that have a name."""


def _candidates(_: Any, __: attrs.Attribute[Any], value: tuple[Any, ...]) -> None:
    if all(isinstance(candidate, str) and candidate in ("gentle", "annealed", "untrained") for candidate in value):
        raise ValueError(f"candidates must hold a value of sigma2, a schedule, or a rule for it, got {list(value)}")
    for index, candidate in enumerate(value):
        if isinstance(candidate, str) and candidate in RULES:
            continue
        try:
            resolve(candidate, Constant(1.0), f"candidates[{index}]")
        except ValueError as error:
            raise ValueError(f"{error}; names are {list(RULES)}") from None


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"candidates must be a sequence, got {value!r}")
    return tuple(value)


@library_part
@attrs.frozen
class HeldOut:
    """Choose sigma2 by held-out samples, from a list of candidates.

    1. A quarter of the samples of each class is held out, at least one. But a class keeps at least one sample more than
       it has prototypes, and equal samples stay together.
    2. Each candidate trains new initial prototypes on the kept samples for a few epochs. The schedule of the step size
       is shortened to these epochs.
    3. Unless one round decides, the best two candidates, and the best one annealed, train again for about twice as many
       epochs.
    4. The candidate with the smallest held-out loss is used for the fit on all samples.

    One round decides if there are at most three candidates and neither "grid" nor "annealed" is one of them. All trials
    together then visit 0.4 times as many samples as the fit, and otherwise twice as many. If fewer than 10 samples, or
    only samples of one class, can be held out, or if there are too few epochs to compare anything, sigma2 is "blended".
    A single value is used without trials.

    Parameters
    ----------
    candidates : sequence of str, float or Schedule
        Values of sigma2 to try. A string is one of these:

        - "blended" and "half_median": the rules of that name, see :class:`rplvq.RiemannianLVQ`;
        - "grid": seven values in equal ratios, from half of "blended" to twice "half_median", fewer if there are few
          epochs;
        - "gentle": "blended" with the step size "auto", if the step size of the fit is None;
        - "annealed": the best candidate of the first round, annealed to a quarter of its start;
        - "untrained": the initial prototypes, with the sigma2 of the smallest held-out loss. If they win, the fit does
          not train, and ``n_epochs_`` is 0. ``partial_fit`` ignores this candidate.

        By default "grid", "gentle", "annealed" and "untrained".

    Notes
    -----
    The held-out loss is ``-mean_i sum_c t_ic log p(c | X_i)`` with the posterior of the cost, after sigma2 has been
    recalibrated (temperature scaling). The mean is weighted by the sample weights, and t may be soft labels. All trials
    use the same split and the same order of samples, drawn from a copy of the generator of the fit. A fit whose sigma2
    was chosen therefore equals the fit with this sigma2, bit for bit.

    Examples
    --------
    >>> from rplvq import HeldOut, RiemannianLVQ
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=HeldOut([0.05, 0.1, 0.2]), max_epochs=10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.sigma2_ in (0.05, 0.1, 0.2)
    (True, True)
    """

    candidates: tuple[Any, ...] = attrs.field(
        default=("grid", "gentle", "annealed", "untrained"), converter=_as_tuple, validator=_candidates
    )


AUTO = HeldOut(("blended", "half_median", "gentle"))
"""The candidates of ``sigma2="auto"``.

No single rule suits all data. If all classes have about the same spread, small values overfit. If the spreads differ
much, large values move prototypes by samples that are far from any border. If samples are few, steps of the paper's
size follow single samples.
"""
