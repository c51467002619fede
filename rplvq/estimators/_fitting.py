"""What the local and the distributed estimator share: how to make the trainer, draw the seed and store the result."""

import copy
import sys
import warnings
from numbers import Integral
from os import PathLike

import attrs
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from rplvq.arrays import Samples, check_class_sizes, stacked
from rplvq.capabilities import BeforeFit, Referenced, provides
from rplvq.estimators._following import Stream
from rplvq.estimators._names import (
    chooses_counts,
    resolve_cost,
    resolve_early_stopping,
    resolve_initializer,
    resolve_sigma2_rule,
    resolve_step_size,
    with_two_per_class,
)
from rplvq.initializers import DiscriminantMeans
from rplvq.io import load_checkpoint, require_same_origin
from rplvq.manifolds import chosen_rows, variation_of
from rplvq.parts import callables
from rplvq.protocols import AnyManifold, Array, ArrayLike, Initializer, Prototypes
from rplvq.schedules import initial_evidence, is_auto
from rplvq.selection import Choice, HeldOut, More, choose, enough_epochs
from rplvq.training import Origin, Progress, State, Trainer, decoded


def make_trainer(model: BaseEstimator, manifold: AnyManifold, initializer: Initializer) -> Trainer:
    """Return the trainer for the parameters of an estimator, with "auto" if held-out samples are to choose sigma2."""
    return Trainer(
        manifold,
        resolve_cost(model.cost),
        initializer,
        model.sigma2 if resolve_sigma2_rule(model.sigma2) is None else "auto",
        resolve_step_size(model.step_size),
        max_epochs=model.max_epochs,
        batch_size=model.batch_size,
        early_stopping=resolve_early_stopping(model.early_stopping),
        growth=callables("growth", model.growth),
        callbacks=callables("callbacks", model.callbacks),
        n_jobs=model.n_jobs,
        verbose=model.verbose,
    )


def initializer_of(
    model: BaseEstimator, counts: tuple[int, ...], classes: Array, targets: Array, weights: Array | None
) -> Initializer:
    """Return the initializer of an estimator; raise ValueError if a class has fewer samples than its prototypes."""
    if not isinstance(model.init, (tuple, list)):
        check_class_sizes(targets, weights, counts, classes)
    return resolve_initializer(model.init, counts, classes)


def planned(model: BaseEstimator, trainer: Trainer, n_visits: float) -> Trainer:
    """Return the trainer with as many epochs as so many visits need, see :func:`rplvq.selection.enough_epochs`.

    The number stays unless the fit chooses how much to train, and if anything else depends on it: with full batches,
    growth, early stopping or schedules of sigma2.
    """
    rule = resolve_sigma2_rule(model.sigma2)
    is_simple = trainer.batch_size is not None and not trainer.growth and trainer.early_stopping is None
    if rule is None or any(map(callable, rule.candidates)) or not (is_simple and trainer.leaves_step):
        return trainer
    return attrs.evolve(trainer, max_epochs=enough_epochs(trainer.max_epochs, n_visits))


def draw_seed(model: BaseEstimator) -> int:
    """Draw the seed of a fit from ``random_state``."""
    return int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))


def ambient_of(manifold: AnyManifold) -> AnyManifold:
    """Return the manifold that checks the samples of a new fit: ``ambient`` if a reference is to be learned first."""
    return manifold.ambient if provides(manifold, Referenced) else manifold


def referenced(manifold: AnyManifold, samples: Samples) -> tuple[AnyManifold, Samples]:
    """Return the manifold with its reference, if it needs one, and samples of :func:`ambient_of` in its coordinates."""
    if not provides(manifold, Referenced):
        return manifold, samples
    learned, codes = manifold.referenced(samples.codes, samples.classes, samples.weights)
    return learned, attrs.evolve(samples, codes=codes)


def new_or_resumed(
    model: BaseEstimator, resume: str | PathLike[str] | None, classes: Array, samples: Samples
) -> tuple[Progress | None, Origin]:
    """Return the progress of the checkpoint ``resume``, or None for a new fit, and the origin of the fit.

    ValueError is raised if the parameters, the seed or the data of the checkpoint differ. The caller checks the
    progress by :func:`rplvq.io.require_valid`, once the manifold has its reference.
    """
    for callback in callables("callbacks", model.callbacks):
        if provides(callback, BeforeFit):  # a Checkpoint refuses a file that cannot be written
            callback.before_fit()
    parameters = model.get_params(deep=False)
    if resume is None:
        return None, Origin(parameters, draw_seed(model), classes, samples)
    loaded = load_checkpoint(resume)
    if isinstance(model.random_state, Integral) or loaded.origin is None:
        seed = draw_seed(model)
    else:
        seed = int(loaded.origin["seed"])  # any other random_state cannot be repeated
    origin = Origin(parameters, seed, classes, samples)
    require_same_origin(resume, loaded, origin)
    return loaded.progress, origin


def begin_training(
    model: BaseEstimator, trainer: Trainer, prototypes: Prototypes, labels: Array, samples: Samples, n_classes: int,
    rng: np.random.Generator, *, validation: Samples | None = None, n_samples: float | None = None,
    in_stream: bool = False,
) -> tuple[Trainer, Progress]:  # fmt: skip
    """Return the trainer and the progress before the first epoch; held-out samples choose them if a rule asks so.

    ``prototypes`` and ``labels`` (K,) are the first prototypes. ``n_samples`` is the number of samples of the fit, if
    ``samples`` are only a part of them. In a stream, and with rules of growth, the fit trains in any case.
    """
    rule = resolve_sigma2_rule(model.sigma2)
    given = trainer.step_size
    choice = None
    more = None
    if chooses_counts(model) and not in_stream and trainer.max_epochs > 0:
        more = _two_per_class(trainer, samples, n_classes, rng)
        rule = rule or HeldOut((model.sigma2,))
    # In a stream "auto" runs no trials, because the first batch may be small.
    if rule is not None and not (in_stream and is_auto(model.sigma2)):
        evidence = initial_evidence(trainer.manifold, trainer.cost, prototypes, labels, samples)
        must_train = in_stream or bool(trainer.growth)
        plan = choose(rule, trainer, prototypes, evidence, samples, rng, more=more, must_train=must_train)
        trainer, prototypes, labels, choice = plan
        if model.verbose:
            sys.stderr.write(f"{type(model).__name__}: {choice}\n")
    stopped = choice is not None and not choice.trains
    is_bounded = not (in_stream or stopped)
    state = trainer.start(prototypes, labels, samples, n_classes, n_samples=n_samples, is_bounded=is_bounded)
    # The state has the chosen steps. A later stream asks the trainer whether the user gave any.
    trainer = attrs.evolve(trainer, step_size=given)
    if choice is not None and stopped and not trainer.leaves_step and trainer.max_epochs > 0:
        warnings.warn(
            f"step_size={trainer.step_schedule!r} is not used, because held-out samples chose {choice.chosen!r} "
            "without training (print choice_). To train in any case, give sigma2 a number or 'half_median'",
            stacklevel=4,
        )
    return trainer, trainer.begin(state, rng, validation)._replace(stopped=stopped, choice=choice)


def untrained_of_all(
    trainer: Trainer, progress: Progress, samples: Samples, n_classes: int, rng: np.random.Generator
) -> Progress:
    """Return the progress of a fit that does not train with prototypes of all samples: none need to be held out."""
    if progress.choice.chosen == "discriminant":
        trainer = attrs.evolve(trainer, initializer=DiscriminantMeans())
    prototypes, labels = trainer.first_prototypes(samples, n_classes, rng)
    state = progress.state._replace(prototypes=prototypes, labels=labels)
    return progress._replace(state=state, best=state)


def _two_per_class(trainer: Trainer, samples: Samples, n_classes: int, rng: np.random.Generator) -> More | None:
    """Return the start of a fit with two prototypes per class, None if a class has too few samples."""
    if trainer.growth:
        raise ValueError("prototypes_per_class='auto' with growth, which changes the number itself: give a number")
    initializer = with_two_per_class(trainer.initializer, n_classes)
    sizes = np.bincount(samples.classes, np.ceil(samples.filled_weights), minlength=n_classes)
    if sizes.min() < 2:
        return None
    other = attrs.evolve(trainer, initializer=initializer)
    prototypes, labels = other.first_prototypes(samples, n_classes, copy.deepcopy(rng))
    return More(initializer, prototypes, initial_evidence(trainer.manifold, trainer.cost, prototypes, labels, samples))


def store(
    model: BaseEstimator, X: ArrayLike | None, trainer: Trainer, state: State, classes: Array,
    rng: np.random.Generator, history: dict[str, Array], met: Array | None = None,
    stream: Stream = Stream(),  # noqa: B008 - immutable
    choice: Choice | None = None, samples: Samples | None = None,
) -> None:  # fmt: skip
    """Set all fitted attributes of a RiemannianLVQ in one assignment, after everything that can fail.

    Another thread, and Ctrl-C, find the old model or the new one. ``X`` gives the number of features; None keeps it.
    ``classes`` (C,) are the labels of all classes, and ``met`` (M,) those that have prototypes, if some have none.
    ``choice`` and ``samples`` are those of a new fit.
    """
    labels = (classes if met is None else met)[state.labels]
    prototypes = decoded(trainer.manifold, state, labels)
    new = copy.copy(model)
    if X is not None:
        validate_data(new, stacked(X), skip_check_array=True)
    else:
        choice = getattr(model, "choice_", None)
    fitted = {
        "state_": state,
        "trainer_": trainer,
        "_rng": rng,
        "_stream": stream,
        "classes_": classes,
        "prototypes_": prototypes,
        "prototype_labels_": labels,
        "sigma2_": state.sigma2 * (1.0 if choice is None else choice.calibration),
        "step_size_": float(state.step_schedule(0, max(trainer.max_epochs, 1))),
        "choice_": choice,
        "n_epochs_": int(history["epoch"][-1]) if met is None else getattr(model, "n_epochs_", 0) + 1,
        "history_": history,
    }
    if samples is not None:
        rows = chosen_rows(len(samples), prototypes.shape[-1])
        points = np.asarray(trainer.manifold.decode(np.asarray(samples.codes[rows])))
        fitted["missing_channels_"] = variation_of(points, samples.filled_weights[rows])
    model.__dict__ = vars(new) | fitted
