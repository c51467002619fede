"""What a fit can do with its samples, and how each of these candidates does on a fold that is held out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, distances
from rplvq.capabilities import Supervised, WithAmount, WithSchedule, provides
from rplvq.initializers import Discriminant, places_means
from rplvq.manifolds import means_of_folds
from rplvq.protocols import Array, Initializer, Prototypes, Schedule
from rplvq.schedules import InitialEvidence, Share, resolve_sigma2
from rplvq.selection._held_out import HeldOut, is_untrained
from rplvq.training import Trainer

AMOUNT = 3.0
"""Amount of training, in epochs times the first share (see :class:`rplvq.schedules.Share`).

On 44 problems under the affine-invariant metric the amounts 1, 3 and 6 gave mean accuracies of 0.784, 0.786 and
0.785, and log-losses of 0.624, 0.612 and 0.615. Trying 0.3 and 6 side by side took twice the time and gave 0.785.
So many samples that the trials take a part of them need no more than the 1 of :class:`rplvq.Share`: on 20,000 samples
of SynII 1 and 3 end at accuracies of 0.987 and 0.985, and in trials of 6000 samples at 0.982 and 0.975."""


class More(NamedTuple):
    """A start with more prototypes: their initializer, the prototypes (K, ...), and the distances to them."""

    initializer: Initializer
    prototypes: Prototypes
    evidence: InitialEvidence


class Candidate(NamedTuple):
    """One way to make prototypes, with the name that it has in :class:`rplvq.HeldOut`."""

    name: str
    sigma2: Schedule | None = None  # None without training
    step_size: Any = None  # None takes that of the trainer
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
    found: list[Candidate] = []
    still: list[Candidate] = []
    for value in rule.candidates:
        if not is_untrained(value):
            sigma2 = resolve_sigma2(value, lambda: evidence)
            found.append(Candidate(str(value), sigma2, step, isinstance(value, str)))
            if more is not None:
                other = resolve_sigma2(value, lambda: more.evidence)
                found.append(found[-1]._replace(name=f"{value}, two per class", sigma2=other, more=more))
        elif value == "discriminant" and start is not None:
            still.append(Candidate(value, start=start))
        elif value == "untrained" and not must_train:
            still.append(Candidate(value))
    return found + still


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
                prototypes = self._trained(candidate, prototypes, labels, n_epochs)
            found = distances(self.trainer.manifold, prototypes, self.held.codes)
        except (ValueError, FloatingPointError):
            return Judged(None, labels)
        return Judged(found if np.isfinite(found).all() else None, labels)

    def _trained(self, candidate: Candidate, prototypes: Prototypes, labels: Array, n_epochs: int) -> Prototypes:
        quiet: dict[str, Any] = {"callbacks": (), "growth": (), "early_stopping": None, "verbose": 0}
        trainer = attrs.evolve(candidate.trainer(self.trainer), max_epochs=n_epochs, **quiet)
        with np.errstate(all="ignore"):  # a trial that diverges is no reason for a warning from the fit
            # A rule's sigma2 is at most half the median squared distance, so that no step needs to be bounded.
            state = trainer.start(prototypes, labels, self.kept, self.n_classes, is_bounded=not candidate.is_rule)
            return trainer.run(state, self.kept, np.random.default_rng(self.seed)).state.prototypes


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
    means: Iterator[Any] = repeat(None, len(dealt))
    if not learns and len(labels) == n_classes and places_means(trainer.initializer):
        means = _class_means(trainer, samples, prototypes, [kept for kept, _ in dealt])
    for (rows, held_out), found in zip(dealt, means, strict=True):
        if not len(held_out):
            continue
        kept, held, pilot = samples.subset(rows), samples.subset(held_out), trainer
        try:
            if learns:
                pilot, kept, held = _relearned(trainer, kept, held)
            first = pilot.first_prototypes(kept, n_classes, np.random.default_rng(seed)) if found is None else found
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
    for found in means_of_folds(trainer.manifold, codes, samples.classes, np.asarray(means), trains):
        yield found, labels


def _relearned(trainer: Trainer, kept: Samples, held: Samples) -> tuple[Trainer, Samples, Samples]:
    """Return the trainer and the samples under a manifold that is learned from the kept samples only."""
    manifold, inner, outer = cast(Supervised, trainer.manifold).relearned(
        kept.codes, held.codes, kept.classes, kept.weights
    )
    pilot = attrs.evolve(trainer, manifold=manifold)
    return pilot, attrs.evolve(kept, codes=inner), attrs.evolve(held, codes=outer)
