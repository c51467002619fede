"""Classes and prototypes of a stream: what each call of ``partial_fit`` does before its sweep.

Classes may appear late, and classes that are known may have no sample yet. Such classes have no prototypes, and costs
and trainers do not see them: the labels of prototypes are indices 0..M-1 among the M classes that have prototypes.
"""

from collections.abc import Callable, Sequence, Set
from functools import cache
from typing import Any

import attrs
import numpy as np
from sklearn.base import BaseEstimator

from rplvq.arrays import Samples, one_type, same_type
from rplvq.capabilities import PerClass, Windowed, provides
from rplvq.costs import RSLVQ, restrict_to_classes
from rplvq.estimators._fitting import begin_training, initializer_of, make_trainer, referenced
from rplvq.estimators._following import PendingClasses, Stream
from rplvq.estimators._names import first_counts, resolve_initializer
from rplvq.initializers import ClassMeans
from rplvq.parts import callables
from rplvq.protocols import AnyManifold, Array, ArrayLike, Cost, Initializer
from rplvq.schedules import initial_evidence, wants_default
from rplvq.selection import Choice
from rplvq.training import State, Trainer, Window, with_prototypes, without_prototypes

SETTLED = 10  # number of samples per prototype from which on a late class is no longer initialized anew
OTHERS = 200  # number of samples of the other classes that are kept until then
GATHERED = 1000  # number of samples that are kept while all are of one class; if more come, chance decides which ones


def known_classes(announced: ArrayLike | None, fitted: Array | None) -> Array | None:
    """Return the classes that are known before the labels of a call are read, or None if none are.

    ValueError is raised if not all sorted classes ``fitted`` (C,) of the model are announced again, or types differ.
    """
    if announced is None:
        return fitted
    named = one_type(list(announced) if isinstance(announced, Set) else announced, "classes")
    if named.ndim != 1:
        raise ValueError(f"classes must be a list of labels, got {announced!r}")
    named = np.unique(named)
    if fitted is None:
        return named
    if not (same_type(named, fitted) and np.isin(fitted, named).all()):
        raise ValueError(
            f"classes={named.tolist()} differ from those of the first call, {fitted.tolist()}: "
            "a later call may add some, and must name them all"
        )
    return np.asarray(np.union1d(fitted, named))


def met_classes(classes: Array, prototype_labels: Array) -> Array:
    """Return the indices (M,), among sorted classes (C,), of the classes that have prototypes, with labels (K,)."""
    return np.searchsorted(classes, np.unique(prototype_labels))


def present_classes(targets: Array, n_classes: int) -> Array:
    """Return the class indices that occur in targets (N,), or all of them for class probabilities (N, C)."""
    return np.unique(targets) if targets.ndim == 1 else np.arange(n_classes)


def cost_of_classes(cost: Cost, met: Array, known: Array) -> Cost:
    """Return the cost for the classes with indices ``met`` (M,) among those ``known`` (C,)."""
    return restrict_to_classes(cost, met) if len(met) < len(known) else cost


def buffered(samples: Samples, classes: Array) -> Samples:
    """Return the samples of a call with labels as targets, shuffled, so that any suffix is balanced in expectation."""
    order = np.random.default_rng(0).permutation(len(samples))
    labels = classes[samples.targets] if samples.targets.ndim == 1 else samples.targets
    return Samples(samples.codes[order], labels[order], samples.filled_weights[order])


def _soft_labels_wait(absent: Array) -> ValueError:
    return ValueError(f"soft labels need prototypes of every class, and class {absent.tolist()[0]!r} has none yet")


def gathered(alone: Samples, call: Samples, known: Array) -> Samples:
    """Return gathered samples of one class, with labels as targets, and those of a call, indexed by ``known`` (C,)."""
    if call.targets.ndim == 2:
        raise _soft_labels_wait(np.setdiff1d(known, alone.targets))
    indexed = Samples(alone.codes, np.searchsorted(known, alone.targets), alone.weights)
    return indexed.followed_by(call).canonical()


def within(samples: Samples, met: Array) -> Samples:
    """Renumber targets, unless they are probabilities, to positions in ``met`` (M,), the classes with prototypes."""
    if samples.targets.ndim != 1:
        return samples
    return Samples(samples.codes, np.searchsorted(met, samples.targets), samples.weights)


def begin_stream(
    model: BaseEstimator, manifold: AnyManifold, known: Array, batch: Samples, stream: Stream, rng: np.random.Generator
) -> tuple[Array, Trainer, State, Stream, Choice | None]:
    """Choose the prototypes in the first call of a stream, or in each call until a second class has come.

    Return what :func:`prepare_partial_fit` does, and the choice by held-out samples, if one was asked for.
    """
    manifold, samples = referenced(manifold, batch)
    given = isinstance(model.init, (tuple, list))
    met = np.arange(len(known)) if given else present_classes(samples.targets, len(known))
    inside = within(samples, met)
    wanted = np.take(first_counts(model, known), met)
    few = len(met) < 2 or stream.alone is not None  # a class may have fewer samples than it should have prototypes
    counts = np.minimum(wanted, np.bincount(inside.classes)) if few else wanted
    initializer = initializer_of(model, tuple(counts.tolist()), known[met], inside.targets, inside.weights)
    whole = make_trainer(model, manifold, initializer)
    trainer = attrs.evolve(whole, cost=cost_of_classes(whole.cost, met, known))
    call = cache(lambda: buffered(samples, known))
    stream = stream._replace(cost=whole.cost, recent=recent_samples(trainer.growth, None, call), alone=None)
    if few:
        stream = stream._replace(pending=short_of_samples(call(), known[met], wanted))
    if len(met) < 2:
        state = alone_state(trainer, inside, rng)
        return met, trainer, state, stream._replace(alone=buffered(batch, known).latest(GATHERED)), None
    try:
        first = trainer.first_prototypes(inside, len(met), rng)
    except ValueError:  # single samples show no spread, which a discriminant needs: they are the prototypes then
        knows_counts = isinstance(model.init, str) or provides(model.init, PerClass)
        if not knows_counts or np.bincount(inside.classes).max() > 1:
            raise
        trainer = attrs.evolve(trainer, initializer=ClassMeans(tuple(counts.tolist())))
        first = trainer.first_prototypes(inside, len(met), rng)
    trainer, progress = begin_training(model, trainer, *first, inside, len(met), rng, in_stream=True)
    return met, trainer, progress.state, stream, progress.choice


def alone_state(trainer: Trainer, samples: Samples, rng: np.random.Generator) -> State:
    """Return the state for samples of a single class, from which nothing is trained.

    A rule for sigma2 gives half the median squared distance to the prototypes, or 1 if most samples coincide with them.
    Predictions do not depend on it, and the call that brings a second class chooses it anew.
    """
    prototypes, labels = trainer.first_prototypes(samples, 1, rng)
    trainer = attrs.evolve(trainer, cost=RSLVQ())  # others, such as GLVQ, have no slopes with a single class
    if isinstance(trainer.sigma2, str) or wants_default(trainer.sigma2):
        try:
            initial_evidence(trainer.manifold, trainer.cost, prototypes, labels, samples).half_median  # noqa: B018
        except ValueError:
            trainer = attrs.evolve(trainer, sigma2=1.0)
    return trainer.start(prototypes, labels, samples, 1)


def short_of_samples(call: Samples, met: Array, counts: Array) -> PendingClasses | None:
    """Return the classes ``met`` (M,) that have fewer samples than they should have prototypes, ``counts`` (M,)."""
    labels = met[[np.count_nonzero(call.targets == label) < count for label, count in zip(met, counts, strict=True)]]
    return PendingClasses(labels, _bounded(call, labels)) if len(labels) else None


def recent_samples(rules: Sequence[object], recent: Samples | None, call: Callable[[], Samples]) -> Samples | None:
    """Return the latest samples that rules of growth want to see, their ``window`` or a call; None without rules."""
    if not rules:
        return None
    latest = call()
    at_most = max((rule.window for rule in rules if provides(rule, Windowed)), default=0) or len(latest)
    return (latest if recent is None else recent.followed_by(latest)).latest(at_most)


def prepare_partial_fit(
    model: BaseEstimator, known: Array, samples: Samples, stream: Stream, rng: np.random.Generator
) -> tuple[Array, Trainer, State, Stream]:
    """Give late classes their prototypes, and let rules of growth look at the latest samples.

    The fitted ``model`` is not changed. ``known`` (C,) are the sorted labels of all classes, including those that this
    call brings. ``samples`` are in canonical order, with indices among ``known`` or class probabilities as targets.

    Return the indices (M,), among all classes, of those that have prototypes now, the trainer with the cost for these
    classes, the state, whose labels are indices among the M classes, and the stream for the next call.
    """
    trainer = model.trainer_
    state = model.state_
    targets = samples.targets
    before = met_classes(known, model.prototype_labels_)
    met = np.union1d(before, present_classes(targets, len(known)))
    new = known[np.setdiff1d(met, before)]
    if targets.ndim == 2 and len(new):
        raise _soft_labels_wait(new)
    whole = trainer.cost if stream.cost is None else stream.cost
    if len(new):
        trainer = attrs.evolve(trainer, cost=cost_of_classes(whole, met, known))
    state = state._replace(labels=np.searchsorted(met, before[state.labels]))
    pending = stream.pending
    call = cache(lambda: buffered(samples, known))
    if targets.ndim == 1 and (pending is not None or len(new)):
        late = PendingClasses(new, call())
        if pending is not None:
            late = PendingClasses(np.union1d(pending.labels, new), pending.samples.followed_by(call()))
        counts = np.take(first_counts(model, known), met)
        state, pending = initialize_new_classes(model.init, counts, trainer, state, known[met], late, rng)
    trainer = attrs.evolve(trainer, growth=callables("growth", model.growth))
    recent = recent_samples(trainer.growth, stream.recent, call)
    if recent is not None:
        seen = np.searchsorted(known[met], recent.targets) if recent.targets.ndim == 1 else recent.targets
        window = Samples(recent.codes, seen, recent.weights)
        state = trainer.resize(state, window, model.n_epochs_)
    return met, trainer, state, stream._replace(cost=whole, recent=recent, pending=pending)


def initialize_new_classes(
    init: Any, counts: Array, trainer: Trainer, state: State, met: Array, late: PendingClasses, rng: np.random.Generator
) -> tuple[State, PendingClasses | None]:
    """Choose the prototypes of late classes from all samples that came since these classes appeared.

    The initializer chooses where they start. They then move to a lower cost of these samples while all other prototypes
    are held (:meth:`rplvq.training.Window.tuned`). The classes ``met`` (M,) have prototypes after this call, and should
    have ``counts`` (M,). Return their state, and the classes with too few samples, which begin anew in the next call.
    """
    labels, pool = late
    unsettled = []
    sizes = {}
    for label in labels:
        mine = pool.at(pool.targets == label)
        index = int(np.searchsorted(met, label))
        wanted, initializer = _initializer_of_one(init, int(counts[index]), len(mine))
        single = Samples(mine.codes, np.zeros(len(mine), dtype=int), mine.filled_weights)
        chosen, _ = attrs.evolve(trainer, initializer=initializer).first_prototypes(single, 1, rng)
        state = without_prototypes(state, np.flatnonzero(state.labels == index))
        state = with_prototypes(state, np.asarray(chosen), np.full(len(chosen), index))
        sizes[index] = len(chosen)
        unsettled += [label] if len(mine) < SETTLED * wanted else []
    indexed = Samples(pool.codes, np.searchsorted(met, pool.targets), pool.weights)
    window = Window(trainer.manifold, trainer.cost, state, indexed)
    for index, size in sizes.items():
        window = window.tuned(index, size)
    return window.state, PendingClasses(np.array(unsettled), _bounded(pool, labels)) if unsettled else None


def _bounded(pool: Samples, labels: Array) -> Samples:
    """Return the samples of the classes ``labels``, and the latest ones of the other classes."""
    others = np.flatnonzero(~np.isin(pool.targets, labels))
    rows = np.ones(len(pool), dtype=bool)
    rows[others[:-OTHERS]] = False
    return pool.at(rows)


def _initializer_of_one(init: Any, wanted: int, n_samples: int) -> tuple[int, Initializer]:
    """Return how many prototypes a late class should have, and an initializer of as many as its samples allow."""
    counts = (min(wanted, n_samples),)
    if isinstance(init, (tuple, list)):
        return wanted, ClassMeans(counts)
    is_told = attrs.has(type(init)) and provides(init, PerClass)
    if is_told:
        return wanted, attrs.evolve(init, per_class=counts)
    return wanted, resolve_initializer(init, counts, np.zeros(1, dtype=int))
