"""The candidates for a sigma2 that ``fit`` chooses by held-out samples; ``rplvq.training`` tries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from rplvq.parts import library_part
from rplvq.schedules._schedules import Constant, resolve

RULES = ("auto", "half_median", "untrained")
"""Candidates that have a name."""


def _candidates(_: Any, __: attrs.Attribute[Any], value: tuple[Any, ...]) -> None:
    if all(isinstance(candidate, str) and candidate == "untrained" for candidate in value):
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
    """Choose sigma2, or not to train at all, by cross-validation within the training samples.

    1. The samples of each class are dealt into four folds; equal samples stay together. Each fold is held out once,
       while the candidates train new initial prototypes on the other folds. Fewer folds are used if fewer hold 1000
       samples, and if there are few epochs.
    2. The trials are short: those of one candidate visit 0.35 times as many samples as the fit. The default step size
       is larger if there are few epochs, so that prototypes can move as far as in the fit. It is tried in two sizes,
       see the parameter ``step_size`` of :class:`rplvq.RiemannianLVQ`.
    3. The candidate with the smallest held-out loss wins, but it must show that it is better: than a candidate before
       it in the list, or than the smaller step, by two standard errors, and than "untrained" by one. Training must also
       make fewer errors than "untrained" on the held-out samples.

    With fewer than 10 held-out samples, or held-out samples of one class only, "untrained" wins if it is a candidate,
    and else the first candidate. A single candidate is used without trials.

    Parameters
    ----------
    candidates : sequence of str, float or Schedule, default=("auto", "untrained")
        Values of sigma2 to try. A string is one of these:

        - "auto": the rule of ``sigma2="auto"``, :func:`rplvq.schedules.blended_sigma2`;
        - "half_median": half the median squared distance to the initial prototypes, the choice of the paper's authors;
        - "untrained": the initial prototypes. If they win, the fit does not train, and ``n_epochs_`` is 0. Where
          training is the point, in ``partial_fit`` and with rules of growth, this candidate is ignored.

    Notes
    -----
    The held-out loss is ``-mean_i sum_c t_ic log p(c | X_i)`` with the posterior of the cost, after sigma2 has been
    recalibrated (temperature scaling) on the held-out samples of all folds. Without recalibration small values of
    sigma2 would win after short training, because their probabilities are better although their prototypes are worse.
    The recalibrated value is also used for the probabilities of the fitted model, unless the user gave the number. The
    standard error is that of the mean difference of two losses of the same samples. The mean is weighted by the sample
    weights, and t may be soft labels. All trials draw their random numbers from a copy of the generator of the fit. A
    fit whose sigma2 was chosen therefore moves its prototypes as the fit with this sigma2 does, bit for bit.

    Examples
    --------
    >>> from rplvq import HeldOut, RiemannianLVQ
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=HeldOut([0.05, 0.1, 0.2]), max_epochs=10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.sigma2_ in (0.05, 0.1, 0.2)
    (True, True)
    """

    candidates: tuple[Any, ...] = attrs.field(default=("auto", "untrained"), converter=_as_tuple, validator=_candidates)
