"""The candidates between which ``fit`` chooses by held-out samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from rplvq.parts import library_part
from rplvq.schedules import Constant, resolve

UNTRAINED = ("discriminant", "untrained")
"""Candidates without training."""
RULES = ("auto", "half_median", *UNTRAINED)
"""Candidates that have a name."""


def is_untrained(candidate: Any) -> bool:
    """Whether a candidate stands for prototypes without training."""
    return isinstance(candidate, str) and candidate in UNTRAINED


def _candidates(_: Any, __: attrs.Attribute[Any], value: tuple[Any, ...]) -> None:
    if all(is_untrained(candidate) for candidate in value):
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
    """Choose sigma2, the amount of training, and whether to train at all, by cross-validation.

    The default fit, ``sigma2="auto"``, chooses between the class means ("untrained"), the prototypes of a discriminant
    analysis ("discriminant"), and training with the rule for sigma2 ("auto"). The page Background
    describes the race between them. With a step size of your own, each sigma2 is tried with that step size.

    Parameters
    ----------
    candidates : sequence of str, float or Schedule, default=("auto", "discriminant", "untrained")
        What to try. A number or a schedule is a sigma2. A string is one of these:

        - "auto": the rule of ``sigma2="auto"``, :func:`rplvq.schedules.blended_sigma2`;
        - "half_median": half the median squared distance to the initial prototypes, the choice of the paper's authors;
        - "discriminant": the prototypes of :class:`rplvq.DiscriminantMeans`, without training. They are tried only
          beside one class mean per class, for positive definite matrices;
        - "untrained": the initial prototypes. ``partial_fit`` and rules of growth ignore the last two.

        A single candidate is taken without trials.

    Notes
    -----
    The loss of a candidate is the mean of ``-log p(y | X)`` over the held-out samples, after sigma2 has been
    recalibrated on them (temperature scaling), because trained prototypes are more certain. The probabilities of the
    fitted model use the recalibrated sigma2, unless sigma2 is a number or a schedule.

    Examples
    --------
    >>> from rplvq import HeldOut, RiemannianLVQ
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=HeldOut([0.05, 0.1, 0.2]), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.sigma2_ in (0.05, 0.1, 0.2)
    (True, True)
    """

    candidates: tuple[Any, ...] = attrs.field(
        default=("auto", "discriminant", "untrained"), converter=_as_tuple, validator=_candidates
    )
