"""What every estimator that trains prototypes shares: the trainer, the seed, and the fitted attributes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from rplvq.estimators._names import resolve_cost, resolve_early_stopping, resolve_sigma2_rule, resolve_step_size
from rplvq.estimators._online import Stream
from rplvq.io import LoadedCheckpoint
from rplvq.protocols import Array, Initializer, Manifold
from rplvq.training import State, Trainer, decoded

__all__ = ["draw_seed", "make_trainer", "seed_to_resume", "store"]


def make_trainer(model: Any, manifold: Manifold[Any], initializer: Initializer) -> Trainer:
    """Return the trainer for the parameters of an estimator.

    A sigma2 that held-out samples choose is left to the caller: the trainer has None instead.
    """
    return Trainer(
        manifold,
        resolve_cost(model.cost),
        initializer,
        model.sigma2 if resolve_sigma2_rule(model.sigma2) is None else None,
        resolve_step_size(model.step_size),
        max_epochs=model.max_epochs,
        batch_size=model.batch_size,
        early_stopping=resolve_early_stopping(model.early_stopping),
        growth=tuple(model.growth or ()),
        callbacks=tuple(model.callbacks or ()),
        n_jobs=model.n_jobs,
        verbose=model.verbose,
    )


def draw_seed(model: Any) -> int:
    """Draw the seed of a fit from ``random_state``."""
    return int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))


def seed_to_resume(model: Any, loaded: LoadedCheckpoint) -> int:
    """Return the seed of a resumed fit.

    An integer ``random_state`` gives the same seed again; the caller compares it with that of the checkpoint. Anything
    else cannot, so the seed of the checkpoint is used.
    """
    if isinstance(model.random_state, Integral) or loaded.origin is None:
        return draw_seed(model)
    return int(loaded.origin["seed"])


def store(
    model: Any,
    X: Any,
    trainer: Trainer,
    state: State,
    classes: Array,
    rng: np.random.Generator,
    history: dict[str, Array],
    met: Array | None = None,
    stream: Stream = Stream(),  # noqa: B008 - immutable
) -> None:
    """Set all fitted attributes of a RiemannianLVQ at once, after everything that can fail.

    Parameters
    ----------
    model : RiemannianLVQ
        Gets the attributes.
    X : array-like or None
        Samples that give the number of features; None keeps it.
    trainer, state, rng, history
        What training used and found.
    classes : ndarray of shape (C,)
        Labels of all classes.
    met : ndarray of shape (M,), optional
        Labels of the classes that have prototypes, if some have none.
    stream : Stream
        What ``partial_fit`` remembers.
    """
    labels = (classes if met is None else met)[state.labels]
    prototypes = decoded(trainer.manifold, state, labels)
    if X is not None:
        validate_data(model, X, skip_check_array=True)
    fitted = {
        "state_": state,
        "trainer_": trainer,
        "_rng": rng,
        "_stream": stream,
        "classes_": classes,
        "prototypes_": prototypes,
        "prototype_labels_": labels,
        "sigma2_": state.sigma2,
        "n_epochs_": int(np.count_nonzero(history["epoch"])) if history else 0,
        "history_": history,
    }
    model.__dict__.update(fitted)  # in one go: Ctrl-C finds the old model or the new one
