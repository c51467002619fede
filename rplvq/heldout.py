"""A sigma2 that fit chooses by held-out samples: what is asked for, and prototypes that are better left alone.

The default of :class:`rplvq.RiemannianLVQ` is such a choice, a short one: :data:`QUICK`.

:mod:`rplvq.trials` runs what :class:`HeldOut` asks for.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from rplvq.checks import count_from, share
from rplvq.protocols import Schedule
from rplvq.schedules import Annealed, Constant, is_auto, number, positive

__all__ = ["QUICK", "HeldOut", "Still", "named_sigma2"]


@attrs.frozen
class HeldOut:
    """Choose sigma2 and its schedule by held-out log posterior, for at most the price of two more fits.

    1. Of each class, ``fraction`` of its samples are held out, at least one; but it keeps one more than it has
       prototypes, and of classes too small for that none are held out. Equal samples stay together.
    2. Each of ``candidates`` values, from half of "blended" (:func:`rplvq.sigma2.blended_sigma2`) to twice the
       half-median in equal ratios, trains new initial prototypes on the kept samples for a few epochs, with the step
       size's schedule shortened to these; and so does "blended" with a gentle step.
    3. The best two, and the best one annealed, train again for about twice as many epochs. Two candidates without
       annealing need no second round.
    4. The best of these is compared with the initial prototypes of the kept samples: if those are better, the fit does
       not train.
    5. The fit then trains on all samples with the schedule chosen.

    Steps 2 and 3 take half each of ``price`` times the fit's ``max_epochs`` times its visits of samples, so that the
    whole costs less than three fits by default. With few epochs fewer candidates are tried, for an epoch each at least.
    Where fewer than 10 samples or only those of one class can be held out, or there are too few epochs to compare
    anything, sigma2 is that of "blended".

    Parameters
    ----------
    fraction : float, default=0.25
        Share of the samples of a class that are held out, in (0, 1).
    candidates : int, default=7
        Values of the grid; two are "blended" and the half-median themselves.
    annealing : float or None, default=0.25
        Share of its start to which the annealed schedule falls; None tries constants alone.
    untrained : bool, default=True
        Whether the initial prototypes may win; the model is then theirs, with the sigma2 of their best held-out
        posterior, and ``n_epochs_`` is 0. ``partial_fit``, which is there to train, never lets them.
    price : float, default=2.0
        Visits of samples that all trials may take together, in those of the fit.
    gentle : bool, default=True
        Whether, with ``step_size=None``, "blended" is tried with ``step_size="auto"`` too, the paper's decay from a
        smaller start; where it wins, the fit takes that step.

    Notes
    -----
    The criterion is ``-mean_i sum_c t_ic log p(c | X_i)`` with the cost's own posterior, minimised over the sigma2 of
    the posterior (temperature scaling), for labels as for soft labels t, weighted by sample weights. All trials see the
    same split and order, drawn from a copy of the fit's generator: a fit whose sigma2 was chosen is the fit with that
    sigma2, to the same bits.

    Examples
    --------
    >>> from rplvq import HeldOut, RiemannianLVQ
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(n_per_class=40, random_state=0)
    >>> model = RiemannianLVQ(sigma2=HeldOut(candidates=4), max_epochs=10, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    fraction: float = attrs.field(default=0.25, converter=number, validator=share())
    candidates: int = attrs.field(default=7, converter=number, validator=count_from(1))
    annealing: float | None = attrs.field(default=0.25, converter=number, validator=share(or_none=True))
    untrained: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))
    price: float = attrs.field(default=2.0, converter=number, validator=positive)
    gentle: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))

    @property
    def one_round(self) -> bool:
        """Whether the first trials decide: two candidates that are not annealed."""
        return self.candidates <= 2 and self.annealing is None

    def grid(self, low: float, middle: float, count: int) -> list[Schedule]:
        """Return ``count`` constants from ``low / 2`` to ``2 middle`` in equal ratios; one or two are these themselves.

        Parameters
        ----------
        low, middle : float
            sigma2 by "blended" and by the half-median.
        count : int
            At least 1.

        Returns
        -------
        list of Constant

        Examples
        --------
        >>> [round(schedule.value, 6) for schedule in HeldOut().grid(2.0, 4.0, 4)]
        [1.0, 2.0, 4.0, 8.0]
        """
        if count < 3:
            return [Constant(value) for value in (low, middle)[:count]]
        return [Constant(float(value)) for value in np.geomspace(low / 2, 2 * middle, count)]

    def annealed(self, start: float) -> Schedule:
        """Return the paper's annealing from ``start`` to the share ``annealing`` of it.

        Examples
        --------
        >>> HeldOut().annealed(2.0)(100, 100) < 0.5
        True
        """
        share = self.annealing or 1.0
        return Annealed(start, drop=(1 - share) * start, floor=0.01 * start)


@attrs.frozen
class Still:
    """A constant sigma2 for prototypes that stay where they are: a fit with it does not train.

    Parameters
    ----------
    value : float
        Positive; for probabilities.

    Examples
    --------
    >>> Still(0.5)(epoch=0, n_epochs=10)
    0.5
    """

    value: float = attrs.field(converter=number, validator=positive)

    def __call__(self, epoch: int, n_epochs: int) -> float:
        """Return the value, the same in every epoch."""
        return self.value


QUICK = HeldOut(candidates=2, annealing=None, untrained=False, price=0.4)
"""What "auto" stands for: "blended", the half-median, or "blended" with gentle steps, by trials for .4 of a fit.

No rule suits all data. Where classes have about the same spread, small values overfit; where spreads differ much,
large ones move prototypes by samples that are far from any border; and where samples are few, steps of the paper's size
follow single ones.
"""


def named_sigma2(value: Any, auto: Any = QUICK) -> Any:
    """Return HeldOut() for "heldout" and ``auto`` for "auto" and None; anything else as it is.

    Where trials would be out of place, ``auto`` is "blended".

    Examples
    --------
    >>> named_sigma2("heldout").candidates, named_sigma2("auto").candidates, named_sigma2(None, auto="blended")
    (7, 2, 'blended')
    """
    if is_auto(value):
        return auto
    return HeldOut() if isinstance(value, str) and value == "heldout" else value
