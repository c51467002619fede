"""What a fit can do with its samples, the folds that are held out, and how each candidate does on a fold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, distances, repeats
from rplvq.capabilities import Supervised, WithAmount, WithSchedule, provides
from rplvq.initializers import Discriminant, places_means
from rplvq.manifolds import means_of_folds
from rplvq.parts import library_part
from rplvq.protocols import Array, Initializer, Prototypes, Schedule
from rplvq.schedules import Constant, InitialEvidence, Share, resolve, resolve_sigma2
from rplvq.training import Decision, Trainer, one_decision

UNTRAINED = ("discriminant", "untrained")
"""Candidates without training."""
RULES = ("auto", "half_median", *UNTRAINED)
"""Candidates that have a name."""
FOLDS = 4
"""Number of folds into which the samples are dealt."""
AMOUNT = 3.0
"""Amount of training, in epochs times the first share (see :class:`rplvq.schedules.Share`).

On 44 problems under the affine-invariant metric the amounts 1, 3 and 6 gave mean accuracies of 0.784, 0.786 and
0.785, and log-losses of 0.624, 0.612 and 0.615. Trying 0.3 and 6 side by side took twice the time and gave 0.785.
So many samples that the trials take a part of them need no more than the 1 of :class:`rplvq.Share`: on 20,000 samples
of SynII 1 and 3 end at accuracies of 0.987 and 0.985, and in trials of 6000 samples at 0.982 and 0.975."""


def is_untrained(candidate: object) -> bool:
    """Whether a candidate stands for prototypes without training."""
    return isinstance(candidate, str) and candidate in UNTRAINED


def _candidates(_: object, __: attrs.Attribute[Any], value: tuple[object, ...]) -> None:
    if all(is_untrained(candidate) for candidate in value):
        raise ValueError(f"candidates must hold a value of sigma2, a schedule, or a rule for it, got {list(value)}")
    for index, candidate in enumerate(value):
        if isinstance(candidate, str) and candidate in RULES:
            continue
        try:
            resolve(candidate, Constant(1.0), f"candidates[{index}]")
        except ValueError as error:
            raise ValueError(f"{error}; names are {list(RULES)}") from None


def _as_tuple(value: object) -> tuple[str | float | Schedule, ...]:
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

    candidates: tuple[str | float | Schedule, ...] = attrs.field(
        default=("auto", "discriminant", "untrained"), converter=_as_tuple, validator=_candidates
    )


def split_classes(samples: Samples, labels: Array, rng: np.random.Generator, fraction: float) -> tuple[Array, Array]:
    """Draw samples to hold out from each class; return the sorted indices of the kept and of the held-out samples.

    At least one sample of a class is held out if possible. Equal samples stay together, and samples of weight 0 are in
    neither part. ``labels`` (K,) are the classes of the prototypes: each class keeps at least one more distinct sample
    than it has prototypes.

    If the samples have groups, the held-out part is whole groups with about this share of the samples, at most half. If
    no such part has samples of each class, a warning is given, and the part is drawn as without groups.
    """
    if samples.groups is not None:
        for n_folds in range(max(round(1 / fraction), 2), 1, -1):
            for kept, part in deal_groups(samples, labels, rng, n_folds):
                if len(np.unique(samples.classes[part])) == len(np.unique(labels)):
                    return kept, part
        _warn("has samples of each class")
    numbers = repeats(samples.codes, samples.targets)
    held = [
        own[: min(max(1, round(fraction * len(own))), spare)] for own, spare in _shuffled(samples, numbers, labels, rng)
    ]
    return _rows(samples, numbers, held)


def deal_folds(samples: Samples, labels: Array, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Deal the samples of each class into folds; return the kept and the held-out indices for each fold.

    The rules are those of :func:`split_classes`, so that some samples of a small class may be held out in no fold.

    If the samples have groups, the folds are those of :func:`deal_groups`. If there are none, a warning is given, and
    the folds are dealt as without groups.
    """
    if samples.groups is not None:
        if folds := deal_groups(samples, labels, rng, FOLDS):
            return folds
        _warn("leaves enough samples of each class")
    numbers, held = repeats(samples.codes, samples.targets), [[] for _ in range(FOLDS)]  # type: ignore[var-annotated]
    first = 0
    for own, spare in _shuffled(samples, numbers, labels, rng):
        for fold, part in enumerate(np.array_split(own, FOLDS)):
            held[(first + fold) % FOLDS].append(part[:spare])
        first += len(own)  # the next class begins where this one ended, so that all folds have about the same size
    return [_rows(samples, numbers, part) for part in held]


def deal_groups(samples: Samples, labels: Array, rng: np.random.Generator, n_folds: int) -> list[tuple[Array, Array]]:
    """Deal whole groups into at most ``n_folds`` folds; return the kept and the held-out indices for each fold.

    As in :class:`sklearn.model_selection.StratifiedGroupKFold`, each group goes to the fold where it leaves the classes
    spread most evenly, the groups of the most uneven classes first. (That class is not used here, because it refuses
    classes with few samples, or warns of them.)

    Each class keeps at least one more sample than it has prototypes, or all. A group that cannot be held out for this
    reason is kept in all folds, and a fold of several such groups is left out, so that there may be no folds.
    """
    usable = np.flatnonzero(samples.filled_weights > 0)
    group = np.unique(np.asarray(samples.groups)[usable], return_inverse=True)[1]
    needed = np.bincount(labels)
    counts = np.zeros((group.max() + 1, len(needed)), dtype=int)
    np.add.at(counts, (group, samples.classes[usable]), 1)
    total = counts.sum(axis=0)

    def can_go(held: Array) -> Array:  # counts (..., C) of held-out samples
        return np.asarray(((total - held > needed) | (held == 0)).all(axis=-1))

    free = rng.permutation(np.flatnonzero(can_go(counts)))
    free = free[np.argsort(-counts[free].std(axis=1), kind="stable")]
    fold_of, held = np.full(len(counts), -1), np.zeros((min(n_folds, len(free)), len(needed)))
    for one in free:
        fold_of[one] = _evenest(held, counts[one], total)
        held[fold_of[one]] += counts[one]
    parts = (fold_of[group] == fold for fold in rng.permutation(np.flatnonzero(can_go(held))))
    return [(usable[~part], usable[part]) for part in parts]


def _evenest(held: Array, counts: Array, total: Array) -> int:
    """Return the fold where a group with ``counts`` (C,) leaves each class spread most evenly over the folds.

    ``held`` (F, C) are the counts of the folds so far, and ``total`` (C,) those of all samples. Of equally even folds
    the one with the fewest samples is returned.
    """
    after = held + np.eye(len(held))[:, :, None] * counts  # (fold that gets the group, fold, class)
    uneven = (after / np.maximum(total, 1)).std(axis=1).mean(axis=1).round(12)
    return int(np.lexsort((held.sum(axis=1), uneven))[0])


def _warn(what: str) -> None:
    warnings.warn(
        f"groups: no held-out part of whole groups {what}, so random samples are held out, as without groups",
        UserWarning,
        stacklevel=2,
    )


def _shuffled(samples: Samples, numbers: Array, labels: Array, rng: np.random.Generator) -> Iterator[tuple[Array, int]]:
    """Yield the distinct samples of each class in random order, and how many of them may be held out at once."""
    usable = samples.filled_weights > 0
    for label, count in enumerate(np.bincount(labels)):
        own = np.unique(numbers[(samples.classes == label) & usable])
        yield rng.permutation(own), max(len(own) - int(count) - 1, 0)


def _rows(samples: Samples, numbers: Array, held: list[Array]) -> tuple[Array, Array]:
    """Return the indices of the usable samples that are not held out, and of those that are."""
    usable = samples.filled_weights > 0
    chosen = np.isin(numbers, np.concatenate(held)) & usable
    return np.flatnonzero(usable & ~chosen), np.flatnonzero(chosen)


class More(NamedTuple):
    """A start with more prototypes: their initializer, the prototypes (K, ...), and the distances to them."""

    initializer: Initializer
    prototypes: Prototypes
    evidence: InitialEvidence


class Candidate(NamedTuple):
    """One way to make prototypes, with the name that it has in :class:`rplvq.HeldOut`."""

    name: str
    sigma2: Schedule | None = None  # None without training
    step_size: object = None  # None takes that of the trainer
    is_rule: bool = True  # whether sigma2 comes from a rule, so that it may be recalibrated
    start: Discriminant | None = None  # whose prototypes take the place of the initial ones
    more: More | None = None  # another start, with more prototypes than the initial ones

    @property
    def trains(self) -> bool:
        """Whether this candidate trains."""
        return self.sigma2 is not None

    @property
    def is_initial(self) -> bool:
        """Whether these are the initial prototypes."""
        return self.sigma2 is None and self.start is None

    @property
    def amount(self) -> float:
        """Amount of training: 0 without training, and NaN for a step size of the user."""
        if not self.trains:
            return 0.0
        share = self.step_size.schedule if provides(self.step_size, WithSchedule) else None
        return float(share.amount) if provides(share, WithAmount) else np.nan

    def trainer(self, trainer: Trainer) -> Trainer:
        """Return the trainer of a fit with this candidate."""
        step_size = trainer.step_size if self.step_size is None else self.step_size
        return attrs.evolve(trainer, sigma2=self.sigma2, step_size=step_size)


def candidates_of(
    rule: HeldOut, trainer: Trainer, evidence: InitialEvidence, start: Discriminant | None, more: More | None = None,
    *, must_train: bool, is_part: bool,
) -> list[Candidate]:  # fmt: skip
    """Return what the candidates of a rule stand for, those without training last.

    If the step size is left to the library, candidates train by :data:`AMOUNT`, or by the amount of
    :class:`rplvq.Share` if the trials take a part of the samples (``is_part``). There may be no discriminant ``start``.
    With ``more``, whatever trains is also tried with more prototypes.
    """
    share = Share() if is_part else Share(amount=AMOUNT)
    step = attrs.evolve(trainer.step_size, schedule=share) if trainer.leaves_step else None
    trained: list[Candidate] = []
    untrained: list[Candidate] = []
    for value in rule.candidates:
        if not is_untrained(value):
            sigma2 = resolve_sigma2(value, lambda: evidence)
            trained.append(Candidate(str(value), sigma2, step, isinstance(value, str)))
            if more is not None:
                other = resolve_sigma2(value, lambda: more.evidence)
                trained.append(trained[-1]._replace(name=f"{value}, two per class", sigma2=other, more=more))
        elif value == "discriminant" and start is not None:
            untrained.append(Candidate(value, start=start))
        elif value == "untrained" and not must_train:
            untrained.append(Candidate(value))
    return trained + untrained


class Judged(NamedTuple):
    """Squared distances of held-out samples to the prototypes of a candidate, and the labels of these."""

    sqdist: Array | None  # (M, K); None if the candidate is not possible with these samples, or if training diverges
    labels: Array  # (K,)


@attrs.frozen(eq=False)
class Fold:
    """The samples that train in a trial and those that are held out."""

    trainer: Trainer  # its sigma2 is not used
    kept: Samples
    held: Samples
    n_classes: int
    seed: int
    rows: Array  # places of those that train among the samples of the fit
    first: tuple[Prototypes, Array]  # the initial prototypes, with their labels (K,)

    def judge(self, candidate: Candidate, n_epochs: int) -> Judged:
        """Return the squared distances of the held-out samples to the prototypes of a candidate."""
        prototypes, labels = self.first
        try:
            if candidate.more is not None:
                other = attrs.evolve(self.trainer, initializer=candidate.more.initializer)
                rng = np.random.default_rng(self.seed)
                prototypes, labels = other.first_prototypes(self.kept, self.n_classes, rng)
            if candidate.start is not None:
                prototypes = candidate.start.prototypes(self.rows)
            if candidate.trains:
                trainer = attrs.evolve(candidate.trainer(self.trainer), max_epochs=n_epochs)
                rng = np.random.default_rng(self.seed)
                decision = Decision(self.kept.n_visits * n_epochs)
                # A rule's sigma2 is at most half the median squared distance, so that no step needs to be bounded.
                bounded = not candidate.is_rule
                # A trial that diverges is no reason for a warning from the fit.
                with np.errstate(all="ignore"), one_decision(decision):
                    state = trainer.start(prototypes, labels, self.kept, self.n_classes, is_bounded=bounded)
                    for epoch in range(1, n_epochs + 1):
                        state = trainer.sweep(state.at_epoch(epoch, n_epochs), self.kept, rng)[0]
                prototypes = state.prototypes
            sqdist = distances(self.trainer.manifold, prototypes, self.held.codes)
        except (ValueError, FloatingPointError):
            return Judged(None, labels)
        is_finite = np.isfinite(sqdist).all()
        return Judged(sqdist if is_finite else None, labels)


def make_folds(
    trainer: Trainer, samples: Samples, prototypes: Prototypes, labels: Array, dealt: list[tuple[Array, Array]],
    seed: int,
) -> Iterator[Fold]:  # fmt: skip
    """Yield the folds that were ``dealt``, as pairs of the rows that train and those that are held out.

    ``prototypes`` and ``labels`` (K,) are the initial prototypes of all samples. A manifold that was learned with the
    classes of all samples is learned again without those that are held out. (Under a whitened metric, the log-loss of
    new samples is then 0.77 instead of 0.83 on BCI 2a.) A fold is left out if its samples do not suffice, or if an
    initializer of the user's own gives other labels for them.
    """
    n_classes = int(labels.max()) + 1
    learns = provides(trainer.manifold, Supervised)
    means: Iterator[tuple[Array, Array] | None] = repeat(None, len(dealt))
    if not learns and len(labels) == n_classes and places_means(trainer.initializer):
        means = _class_means(trainer, samples, prototypes, [kept for kept, _ in dealt])
    for (rows, held_out), start in zip(dealt, means, strict=True):
        if not len(held_out):
            continue
        kept, held, pilot = samples.subset(rows), samples.subset(held_out), trainer
        try:
            if learns:
                pilot, kept, held = _relearned(trainer, kept, held)
            first = start or pilot.first_prototypes(kept, n_classes, np.random.default_rng(seed))
        except ValueError:
            continue
        if np.array_equal(first[1], labels):
            yield Fold(pilot, kept, held, n_classes, seed, rows, first)


def _class_means(
    trainer: Trainer, samples: Samples, means: Prototypes, kept: list[Array]
) -> Iterator[tuple[Array, Array]]:
    """Yield the class means of the samples that each fold keeps, and their labels; ``means`` are those of all."""
    trains = np.zeros((len(kept), len(samples)))
    for fold, rows in enumerate(kept):
        trains[fold, rows] = samples.filled_weights[rows]
    codes, labels = np.asarray(samples.codes), np.arange(len(means))
    for own in means_of_folds(trainer.manifold, codes, samples.classes, np.asarray(means), trains):
        yield own, labels


def _relearned(trainer: Trainer, kept: Samples, held: Samples) -> tuple[Trainer, Samples, Samples]:
    """Return the trainer and the samples under a manifold that is learned from the kept samples only."""
    manifold, inner, outer = cast(Supervised, trainer.manifold).relearned(
        kept.codes, held.codes, kept.classes, kept.weights
    )
    pilot = attrs.evolve(trainer, manifold=manifold)
    return pilot, attrs.evolve(kept, codes=inner), attrs.evolve(held, codes=outer)
