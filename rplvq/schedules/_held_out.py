"""The candidates for a sigma2 that ``fit`` chooses by held-out samples; ``rplvq.training`` tries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from rplvq.parts import library_part
from rplvq.schedules._schedules import Constant, resolve

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
    """Choose sigma2, the default step size, and whether to train at all, by cross-validation.

    The default fit, ``sigma2="auto"``, makes this choice between training with the rule for sigma2, the prototypes of a
    discriminant analysis ("discriminant"), and the class means ("untrained").

    1. The training samples of each class are dealt into four folds; equal samples stay together. The folds are held out
       one after the other. The other three folds give new initial prototypes, which each candidate then trains. Fewer
       folds are held out if they already hold 1000 samples, or if the visits that step 2 allows do not suffice for four
       epochs on each. If ``fit`` is given groups, whole groups are dealt in place of samples.
    2. The trials are short: those of one sigma2 value visit at most 0.35 times as many samples as ``max_epochs`` epochs
       of the fit do. If ``max_epochs`` is below 100, they may visit 3000 samples in place of this number, but not more
       than in a fit of 100 epochs. (A trial has at least one epoch, and at most ``max_epochs``.) With few epochs the
       default step size is larger, up to a cap, so that prototypes can move about as far as in the fit. Each value of
       sigma2 is tried with both default step sizes, see the parameter ``step_size`` of :class:`rplvq.RiemannianLVQ`.
    3. Among the candidates that train, the first one whose loss is at most two standard errors above the smallest is
       preferred; the smaller step comes before the larger one. "discriminant" takes its place if its loss is the
       smallest of all. The fit uses the preferred candidate if its loss is more than one standard error below that of
       the initial prototypes, and if it makes fewer errors on the held-out samples. Otherwise the fit keeps the initial
       prototypes.
    4. Candidates are given up as soon as they can hardly win. From 50 held-out samples on, a candidate is given up if
       an earlier one has a loss at least as low, or if a later one has a loss that is lower by three standard errors.
       Once two folds with 100 samples together have been held out, the difference on all folds is predicted from them.
       It decides between the two step sizes by two standard errors, and between training and "discriminant" by one.
       From then on, all trials end, and the fit uses the candidate, as soon as only one beside the initial prototypes
       is left, its loss is three standard errors below theirs, and it makes fewer errors. A candidate is also given up
       as soon as the probability of a gain of one standard error on all folds is below 2 %, assuming that it has no
       effect on the folds still to come. With four folds, this is so if its loss on the first two is .6 standard errors
       above that of the initial prototypes, or if its loss on the first three is above it at all. The column "n_folds"
       of ``trials_`` says how many folds each candidate was tried on.

    A fit whose step size is chosen in this way plans fewer epochs for few samples: ``(N / 700)^2.5`` times the larger
    of ``max_epochs`` and 100 for N samples, but at least 15 epochs, or as many as make 3600 visits of samples if that
    is fewer, and never more than ``max_epochs``. The default step is larger with fewer epochs, so that prototypes can
    go as far. With a lower limit of 15 epochs in place of 25, the accuracy of nine problems (80 to 500 samples, two
    metrics) changed by -.005 to +.005, and its mean hardly changed. Fits with mini-batches, growth, early
    stopping, a schedule of sigma2 or a learned metric keep all epochs.

    "discriminant" is tried only beside one class mean per class (``init="mean"``, ``prototypes_per_class=1``), for
    positive definite matrices of at most 64 rows under a metric that is not whitened, with at most 2000 samples, and
    with at most three samples per free parameter of the prototypes. With more samples, training was better on the data
    measured. A stream does not try it.

    With fewer than 10 held-out samples, or held-out samples of one class only, "untrained" is chosen if it is a
    candidate, and else the first candidate. A single candidate is used without trials.

    Parameters
    ----------
    candidates : sequence of str, float or Schedule, default=("auto", "discriminant", "untrained")
        Values of sigma2 to try. A string is one of these:

        - "auto": the rule of ``sigma2="auto"``, :func:`rplvq.schedules.blended_sigma2`;
        - "half_median": half the median squared distance to the initial prototypes, the choice of the paper's authors;
        - "discriminant": the prototypes of :class:`rplvq.DiscriminantMeans`, without training;
        - "untrained": the initial prototypes. If they or those of a discriminant are chosen, the fit does not train,
          and ``n_epochs_`` is 0. ``partial_fit`` and rules of growth ignore these two candidates.

    Notes
    -----
    The held-out loss is ``-mean_i sum_c t_ic log p(c | X_i)`` with the posterior of the cost, after sigma2 has been
    recalibrated (temperature scaling) on the held-out samples. Without recalibration small values of
    sigma2 would win after short training, because their probabilities are better although their prototypes are worse.
    The probabilities of the fitted model use a recalibrated value, too, unless the candidate is a number or a schedule.
    This value is calibrated on the held-out samples and on one added sample of unknown class. Without the added sample,
    a few held-out samples that happen to be classified correctly would make all probabilities 1.

    The standard error is that of the mean difference of two losses of the same samples. The mean is weighted by the
    sample weights, and t may be soft labels. With groups, the standard error by which a candidate has to beat the
    initial prototypes is that of the sums within each group, because samples of one group count as correlated.

    All trials draw their random numbers from a copy of the generator of the fit. Up to the epoch at which it ends, the
    fit therefore moves its prototypes, bit for bit, as a fit does that is given the chosen sigma2 and step size, and
    the planned number of epochs, ``trainer_.max_epochs``.

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
        default=("auto", "discriminant", "untrained"), converter=_as_tuple, validator=_candidates
    )
