"""The loop over epochs, the hooks that run after each epoch, and what is said of the result.

A hook takes the progress after an epoch and returns the progress with which training continues. Early stopping is a
hook, and so is every callback of a user. Growth is part of the epoch instead, because it changes the state from which
an epoch starts. Local and distributed training share this loop.

Numbers that are not finite are errors. Three troubles leave finite numbers and are warnings: prototypes at the edge of
the manifold, an epoch of which more than a tenth of the weights were cut, and training that ended worse than it began.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, cast

import attrs
import numpy as np

from rplvq.arrays import Samples, by_block
from rplvq.capabilities import NearestSearch, StepOfShare, provides
from rplvq.exceptions import DivergenceWarning, PointError
from rplvq.parts import count_from, library_part, number_in
from rplvq.protocols import AnyManifold, Array, Prototypes
from rplvq.schedules import median_sqdist
from rplvq.training._resize import new_codes
from rplvq.training._state import EpochReport, Origin, Progress, Score, State

Callback = Callable[[EpochReport], object]
"""Called after each epoch. True stops training, and a mapping of numbers is added to the row of the history."""
Epoch = Callable[[State], tuple[State, dict[str, float]]]
"""Takes the state before an epoch; returns the state after it, and the row of the history."""
Hook = Callable[[Progress], Progress]
"""Takes the progress after an epoch; returns the progress with which training continues."""
WORSE = 0.02
"""Increase of the training error from which on a warning is given, if it is more than one standard error."""
FIXED = ("epoch", "n_prototypes", "step_size", "sigma2", "n_capped")
"""Columns of the history that callbacks cannot change."""
OFTEN = 0.1
"""Share of the weights of an epoch that may be cut before a warning is given."""
TOGETHER = 64
"""Number of prototypes whose distances to each other are the scale for what rounding moves."""
FEW_SAMPLES = 1000
"""So many samples suffice for the median squared distance in a message."""


@library_part
@attrs.frozen
class EarlyStopping:
    """Stop when the cost of held-out samples no longer falls, and keep the best prototypes.

    If no epoch is better than the initial prototypes, these are kept. A fit that does not train holds out nothing.

    Parameters
    ----------
    fraction : float, default=0.1
        Share of the distinct samples of each class that the estimator holds out, at least one. A class keeps one more
        than it has prototypes. If ``fit`` is given groups, whole groups are held out, at most half of the samples.
    patience : int, default=10
        Number of epochs to wait for a lower validation cost.
    tol : float, default=1e-4
        A validation cost is lower if it has fallen by more than this share.

    Examples
    --------
    >>> from rplvq import EarlyStopping, RiemannianLVQ
    >>> from rplvq.datasets import make_syn2
    >>> X, y = make_syn2(n_per_class=30, random_state=0)
    >>> model = RiemannianLVQ(early_stopping=EarlyStopping(patience=3), random_state=0).fit(X, y)
    >>> model.n_epochs_ < 100
    True
    """

    fraction: float = attrs.field(default=0.1, validator=number_in(high=1))
    patience: int = attrs.field(default=10, validator=count_from(1))
    tol: float = attrs.field(default=1e-4, validator=number_in(closed=True))

    def __call__(self, progress: Progress) -> Progress:
        """Compare the validation cost of the epoch with the best one, and stop if the patience is over."""
        cost = progress.row["validation_cost"]
        if cost < progress.best_cost * (1 - self.tol):
            progress = progress._replace(best=progress.state, best_cost=cost)
        is_over = progress.state.epoch - progress.best.epoch >= self.patience
        return progress._replace(stopped=progress.stopped or is_over)


@attrs.frozen
class EpochScore:
    """Callback that measures cost and training error after each epoch, at the price of one pass of distances.

    Without it the history shows cost and error as they were met during the epoch, while the prototypes moved.

    Examples
    --------
    >>> from rplvq import RiemannianLVQ
    >>> from rplvq.training import EpochScore
    >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), [0, 0, 1, 1]
    >>> model = RiemannianLVQ("euclidean_vectors", sigma2=1.0, max_epochs=3, callbacks=[EpochScore()], random_state=0)
    >>> bool(model.fit(X, y).history_["training_error"][-1] == 1 - model.score(X, y))
    True
    """

    def __call__(self, report: EpochReport) -> dict[str, float]:
        """Return cost and training error of the prototypes after the epoch; ValueError if the report has no score."""
        if report.score is None:
            raise ValueError("EpochScore needs a report with a score: this one was made by hand")
        score = report.score()
        return {"cost": score.cost, "training_error": score.error}


def calling(callback: Callback, n_epochs: int, score: Callable[[State], Score], origin: Origin | None = None) -> Hook:
    """Return the hook that passes an :class:`EpochReport` to a callback after each epoch.

    ``score`` measures cost and error of a state on the training samples, once the callback asks the report for them.
    """

    def hook(progress: Progress) -> Progress:
        state = progress.state
        answer = callback(EpochReport(state, n_epochs, progress.row, progress, lambda: score(state), origin))
        if isinstance(answer, Mapping):
            return progress.with_row(_numbers(answer, callback))
        if answer is None or isinstance(answer, (bool, np.bool_)):
            return progress._replace(stopped=progress.stopped or bool(answer))
        raise TypeError(f"callback {callback!r} must return None, True, False or a mapping of numbers, got {answer!r}")

    return hook


def _numbers(row: Mapping[object, object], callback: Callback) -> dict[str, float]:
    """Return what a callback adds to the row of an epoch; raise TypeError unless it maps names to numbers."""
    for name, value in row.items():
        is_number = isinstance(value, (Real, np.bool_)) or (isinstance(value, np.ndarray) and value.shape == ())
        if not isinstance(name, str) or name in FIXED or not is_number:
            rule = f"must map names other than {', '.join(FIXED)} to numbers"
            raise TypeError(f"callback {callback!r} {rule}, got {{{name!r}: {value!r}}}")
    return {str(name): float(cast(float, value)) for name, value in row.items()}


def hooks_of(
    trainer: Any, score: Callable[[State], Score], validation: Samples | None = None, origin: Origin | None = None
) -> list[Hook]:
    """Return what a trainer runs after each epoch, early stopping before the callbacks.

    ``score`` is as for :func:`calling`, ``validation`` and ``origin`` as for :meth:`rplvq.Trainer.epochs`.
    """
    hooks: list[Hook] = [calling(callback, trainer.max_epochs, score, origin) for callback in trainer.callbacks]
    if trainer.early_stopping is not None and validation is not None:
        hooks.insert(0, trainer.early_stopping)  # callbacks then see the best state so far
    return hooks


def run_epochs(
    epoch: Epoch, progress: Progress, rng: np.random.Generator, n_epochs: int, hooks: Sequence[Hook] = (),
    verbose: int = 0,
) -> Iterator[Progress]:  # fmt: skip
    """Continue a run up to ``n_epochs`` epochs in all, and yield the progress after each epoch.

    ``rng``, from which ``epoch`` draws, is set to the random state of ``progress``. The hooks run after each epoch in
    their order. If one raises, the progress is yielded before the exception, so that the epoch is not lost.
    """
    from tqdm.auto import tqdm  # imported only here, because it takes long

    rng.bit_generator.state = progress.rng
    with tqdm(total=n_epochs, initial=progress.state.epoch, disable=not verbose, unit="epoch", leave=False) as bar:
        while progress.state.epoch < n_epochs and not progress.stopped:
            progress = progress.advance(*epoch(progress.state), rng)
            failure: BaseException | None = None
            try:
                for hook in hooks:
                    progress = hook(progress)
            except BaseException as error:  # Ctrl-C in a callback, too
                failure = error
            row = progress.row
            bar.set_postfix(cost=f"{row['cost']:.4g}", error=f"{row['training_error']:.3f}", refresh=False)
            bar.update()
            yield progress
            if failure is not None:
                raise failure


def require_finite(state: State, cost: float) -> None:
    """Raise FloatingPointError if the prototypes or the cost of an epoch are not finite."""
    if not (np.isfinite(np.asarray(state.prototypes)).all() and np.isfinite(cost)):
        raise diverged(state)


def diverged(state: State) -> FloatingPointError:
    """Return the error that says in which epoch training diverged, and what helps."""
    return FloatingPointError(
        f"training diverged in epoch {state.epoch} (step_size {state.step_size:.3g}, sigma2 {state.sigma2:.3g}): "
        "lower step_size, raise sigma2, or leave max_weight at 1; of a cost of your own, check_cost tells whether its "
        "slope has the wrong sign (rplvq.testing)"
    )


def decoded(manifold: AnyManifold, state: State, names: Array) -> Array:
    """Return the points (K, ...) of the prototypes; ``names`` (K,) are the labels of the user for messages.

    FloatingPointError is raised if they are not finite: coordinates of a flat metric need not belong to points.
    """
    with np.errstate(all="ignore"):
        points = np.asarray(manifold.decode(state.prototypes))
    lost = np.flatnonzero(~np.isfinite(points.reshape(len(points), -1)).all(axis=1))
    if len(lost):
        raise FloatingPointError(
            f"prototype {lost[0]} (class {names.tolist()[lost[0]]!r}) has left the manifold: decode of {manifold!r} "
            "gives numbers that are not finite. Lower step_size, or use a cost whose slope falls with the distance; "
            "move of a manifold of your own may bring prototypes back"
        )
    return points


def edge_trouble(manifold: AnyManifold, prototypes: Prototypes, names: Array) -> str | None:
    """Return a warning if one of K prototypes is at the edge of the manifold; ``names`` (K,) are labels of the user.

    There, ``encode`` would refuse its point, and distances are rounding: if each entry of its code is rounded once, it
    moves by more than 1e-8 of the distances between prototypes. Where the metric is flat in the codes, none does.
    """
    codes = np.asarray(prototypes)
    own = np.empty(len(codes))
    largest = 0.0
    with np.errstate(all="ignore"):
        for start in range(0, len(codes), TOGETHER):  # all pairs of many prototypes would take longer than their means
            rows = slice(start, start + TOGETHER)
            part = prototypes if len(codes) <= TOGETHER else new_codes(prototypes, codes[rows])
            moved = np.asarray(manifold.sqdist(part, codes[rows] + np.spacing(np.abs(codes[rows]))))
            own[rows] = np.diag(moved)
            largest = np.fmax(largest, moved.max())
    blurred = np.flatnonzero(~(own <= np.finfo(float).eps * largest))  # NaN counts as blurred
    try:
        if len(blurred):  # encode tells which of them it would refuse
            manifold.encode(np.asarray(manifold.decode(prototypes))[blurred])
    except PointError as error:
        k = blurred[error.index]
        reason = error.reason.partition(". ")[0]
        return (
            f"prototype {k} (class {names.tolist()[k]!r}) is at the edge of the manifold, where "
            f"distances to it are rounding: it {reason}. Heavy-tailed samples throw prototypes that far: regularise "
            "the samples (shrinkage, rplvq.features.shrink for given matrices), or lower step_size or the "
            "manifold's max_step_length"
        )
    return None


def step_trouble(history: dict[str, Array], n_visits: int, schedule: object = None) -> str | None:
    """Return a warning if many weights of an epoch were cut; ``n_visits`` counts visits of samples per epoch.

    Cuts are no trouble if the ``schedule`` of steps is that of a share, because they keep weights at this share.
    """
    if not history or provides(schedule, StepOfShare):
        return None
    share = history["n_capped"] / (n_visits * history["n_prototypes"])
    worst = int(np.argmax(share))
    if not share[worst] > OFTEN:
        return None
    step_size, sigma2, n_capped = (history[name][worst] for name in ("step_size", "sigma2", "n_capped"))
    return (
        f"{int(n_capped)} of {int(n_visits * history['n_prototypes'][worst])} steps of epoch "
        f"{int(history['epoch'][worst])} were cut: the prototypes jump from sample to sample instead of settling. "
        f"step_size (then {step_size:.3g}) is too large for sigma2 (then {sigma2:.3g}): lower step_size to less than "
        "sigma2, or raise sigma2"
    )


def training_errors(manifold: AnyManifold, state: State, samples: Samples) -> Array:
    """Return 1 for each sample (N,) whose nearest prototype has another class, else 0."""

    def of(codes: Array) -> Array:
        if provides(manifold, NearestSearch):
            return np.asarray(manifold.nearest(state.prototypes, codes, state.labels))
        return np.asarray(manifold.sqdist(state.prototypes, codes).argmin(axis=1))

    nearest = by_block(of, samples.codes, n_columns=len(state.labels))
    return np.asarray(state.labels[nearest] != samples.classes, dtype=float)


def worse_trouble(manifold: AnyManifold, first: State, last: State, samples: Samples) -> str | None:
    """Return a warning if the training error is clearly larger after training than with the first prototypes."""
    before, after = (training_errors(manifold, state, samples) for state in (first, last))
    shares = samples.filled_weights / samples.total_weight
    increase = float(shares @ (after - before))
    chance = float(np.linalg.norm(shares * (after - before)))  # a few samples of a small data set are no reason to warn
    if not increase > max(WORSE, chance):
        return None
    half = 0.5 * median_sqdist(manifold, first.prototypes, samples, FEW_SAMPLES)
    is_wide = max(first.sigma2, last.sigma2) > half
    what = "sigma2 or step_size" if is_wide else "step_size"
    return (
        f"training raised the training error from {shares @ before:.3g}, that of the initial prototypes, to "
        f"{shares @ after:.3g}. sigma2 was {first.sigma2:.3g} at first and {last.sigma2:.3g} at last; half the median "
        f"squared distance is {half:.3g}, and a sigma2 above it drives prototypes apart. Lower {what}, or "
        "leave both at 'auto': the fit then trains only if held-out samples show that this helps"
    )


def warn_of(troubles: list[str | None], stacklevel: int) -> None:
    """Give one DivergenceWarning about all troubles, if there are any."""
    if known := [trouble for trouble in troubles if trouble is not None]:
        warnings.warn("; ".join(known), DivergenceWarning, stacklevel=stacklevel + 1)
