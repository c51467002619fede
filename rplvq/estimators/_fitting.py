"""What the local and the distributed estimator share: how to make the trainer, draw the seed and store the result."""

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


def make_trainer(model: Any, manifold: Manifold[Any], initializer: Initializer) -> Trainer:
    """Return the trainer for the parameters of an estimator.

    If held-out samples are to choose sigma2, the trainer has None for it, and the caller runs that choice.
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

    An integer ``random_state`` gives the same seed again, which the caller compares with that of the checkpoint. Any
    other ``random_state`` cannot be repeated, so the seed of the checkpoint is used.
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

    ``X`` gives the number of features; None keeps it. ``classes`` (C,) are the labels of all classes, and ``met`` (M,)
    those of the classes that have prototypes, if some have none.
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
    model.__dict__.update(fitted)  # in one call, so that Ctrl-C leaves either the old model or the new one
