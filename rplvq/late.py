"""Classes that turn up late in a stream, and classes that are known but were never met.

Prototypes are labelled by the classes that have any: class index 0..M-1 among the M classes that were met. Classes that
are known but were never met wait without prototypes; costs and trainers do not see them.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import attrs
import numpy as np

from rplvq.growth import Window
from rplvq.initializers import ClassMeans, hard_targets
from rplvq.labels import one_type, same_type
from rplvq.names import resolve_counts, resolve_initializer
from rplvq.protocols import Array, Initializer, Manifold
from rplvq.resize import with_prototypes, without_prototypes
from rplvq.steps import State
from rplvq.streaming import Kept, Young
from rplvq.trainer import Trainer

__all__ = ["SETTLED", "known_classes", "met_classes", "present_classes", "relabelled", "welcome"]

SETTLED = 10
"""Samples for each prototype of a late class until which its prototypes are set anew from all of them."""
OTHERS = 200
"""Samples of other classes that are kept until then."""


def known_classes(announced: Any, fitted: Array | None) -> Array | None:
    """Classes that partial_fit can rely on: those of the calls before and any announced since, or None.

    Parameters
    ----------
    announced : array-like of shape (C,), optional
        The argument ``classes`` of the call.
    fitted : ndarray of shape (C,), optional
        Sorted classes of the model, None in the first call.

    Raises
    ------
    ValueError
        If not all fitted classes are announced again, or the types differ.
    """
    named = None if announced is None else np.unique(one_type(announced, "classes"))
    if fitted is None or named is None:
        return named if fitted is None else fitted
    if not (same_type(named, fitted) and np.isin(fitted, named).all()):
        raise ValueError(
            f"classes={named.tolist()} differ from those of the first call, {fitted.tolist()}: "
            "a later call may add some, and must name them all"
        )
    return np.asarray(np.union1d(fitted, named))


def met_classes(classes: Array, prototype_labels: Array) -> Array:
    """Return indices (M,) among sorted classes (C,) of those that have prototypes, whose labels are given (K,)."""
    return np.searchsorted(classes, np.unique(prototype_labels))


def present_classes(targets: Array, n_classes: int) -> Array:
    """Class indices among targets (N,), or all for class probabilities (N, C)."""
    return np.unique(hard_targets(targets)) if targets.ndim == 1 else np.arange(n_classes)


def relabelled(state: State, before: Array, after: Array) -> State:
    """Return a state whose labels (K,), indices among classes ``before`` (M,), are those among ``after``."""
    return state._replace(labels=np.searchsorted(after, before[state.labels]))


def welcome(
    model: Any,
    trainer: Trainer,
    state: State,
    known: Array,
    met: Array,
    before: Array,
    call: Kept,
    young: Young | None,
    rng: np.random.Generator,
) -> tuple[State, Young | None]:
    """Set prototypes of late classes from all samples that came since they turned up, until those are enough.

    They start where the initializer puts them, and are moved to a lower cost of those samples, all others held
    (:meth:`rplvq.growth.Window.tuned`).

    Parameters
    ----------
    model : RiemannianLVQ
        With its parameters ``init`` and ``prototypes_per_class``.
    trainer : Trainer
        Of the model, with the cost for the classes met.
    state : State
        Labelled among ``met``.
    known, met, before : ndarray of shape (C,), (M,) and (M',)
        Sorted labels of all classes, of those that have or now get prototypes, and of those that had some before.
    call : Kept
        The samples of a call, with labels.
    young : Young, optional
        Late classes that have not settled.
    rng : numpy.random.Generator
        Handed to the initializer.

    Returns
    -------
    state : State
        With prototypes of all classes.
    young : Young or None
        For the next call.
    """
    labels = np.setdiff1d(met, before) if young is None else np.union1d(young.labels, np.setdiff1d(met, before))
    if not len(labels):
        return state, None
    counts = resolve_counts(model.prototypes_per_class, known)
    pool = call if young is None else young.samples.and_later(call)
    unsettled, sizes = [], {}
    for label in labels:
        mine, index = pool.those(pool.labels == label), int(np.searchsorted(met, label))
        usual = counts[int(np.searchsorted(known, label))]
        wanted, initializer = _initializer_of_one(model.init, usual, len(mine.codes))
        state = _set_anew(state, trainer.manifold, initializer, index, mine, rng)
        sizes[index] = int(np.count_nonzero(state.labels == index))
        unsettled += [label] if len(mine.codes) < SETTLED * wanted else []
    targets = np.searchsorted(met, pool.labels)
    window = Window(trainer.manifold, trainer.cost, state, pool.codes, targets, pool.weights)
    for index, size in sizes.items():
        window = window.tuned(index, size)
    return window.state, Young(np.array(unsettled), _bounded(pool, labels)) if unsettled else None


def _bounded(pool: Kept, labels: Array) -> Kept:
    """Return samples of the classes ``labels``, and the latest of the others."""
    others = np.flatnonzero(~np.isin(pool.labels, labels))
    rows = np.ones(len(pool.labels), dtype=bool)
    rows[others[:-OTHERS]] = False
    return pool.those(rows)


def _initializer_of_one(init: Any, wanted: int, n_samples: int) -> tuple[int, Initializer]:
    """Prototypes that a late class shall have, and the initializer of as many as its samples allow."""
    own = getattr(init, "per_class", None) if attrs.has(type(init)) else None
    wanted = int(own) if isinstance(own, Integral) else wanted
    counts = (min(wanted, n_samples),)
    if isinstance(init, (tuple, list)):
        return wanted, ClassMeans(counts)
    if own is not None:
        return wanted, attrs.evolve(init, per_class=counts)
    return wanted, resolve_initializer(init, counts, np.zeros(1, dtype=int))


def _set_anew(
    state: State, manifold: Manifold[Any], initializer: Initializer, label: int, samples: Kept, rng: np.random.Generator
) -> State:
    """Put prototypes of one class, as the initializer chooses them from its samples, in place of any it had."""
    targets = np.zeros(len(samples.codes), dtype=int)
    prototypes, labels = initializer(manifold, samples.codes, targets, 1, rng, sample_weight=samples.weights)
    if (old := np.flatnonzero(state.labels == label)).size:
        state = without_prototypes(state, old)
    return with_prototypes(state, np.asarray(prototypes), np.full(len(labels), label))
