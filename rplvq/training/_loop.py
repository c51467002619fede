"""The loop over epochs, and the hooks that run after each epoch.

A hook takes the progress after an epoch and returns the progress with which training continues. Early stopping is a
hook, and so is every callback of a user. Growth is part of the epoch instead, because it changes the state from which
an epoch starts. Local and distributed training share this loop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from rplvq.arrays import Samples
from rplvq.parts import count_from, library_part, number_in
from rplvq.training._state import EpochReport, Origin, Progress, Score, State

Callback = Callable[[EpochReport], Any]
"""Called after each epoch. True stops training, and a mapping of numbers is added to the row of the history."""
Epoch = Callable[[State], tuple[State, dict[str, float]]]
"""Takes the state before an epoch; returns the state after it, and the row of the history."""
Hook = Callable[[Progress], Progress]
"""Takes the progress after an epoch; returns the progress with which training continues."""


@library_part
@attrs.frozen
class EarlyStopping:
    """Stop when the cost of held-out samples no longer falls, and keep the best prototypes.

    If no epoch is better than the initial prototypes, these are kept.

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
        best, best_cost, cost = progress.best, progress.best_cost, progress.row["validation_cost"]
        if cost < best_cost * (1 - self.tol):
            best, best_cost = progress.state, cost
        stopped = progress.stopped or progress.state.epoch - best.epoch >= self.patience
        return progress._replace(best=best, best_cost=best_cost, stopped=stopped)


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
            return progress.with_row(dict(answer))
        return progress._replace(stopped=True) if answer else progress

    return hook


def hooks_of(
    trainer: Any, score: Callable[[State], Score], validation: Samples | None = None, origin: Origin | None = None
) -> list[Hook]:
    """Return what a trainer runs after each epoch: early stopping and the callbacks.

    Parameters
    ----------
    trainer : Trainer
        It has the callbacks and the rule of early stopping.
    score : callable
        Measures a state on the training samples.
    validation, origin
        As for :meth:`rplvq.Trainer.epochs`.
    """
    hooks: list[Hook] = [calling(callback, trainer.max_epochs, score, origin) for callback in trainer.callbacks]
    if trainer.early_stopping is not None and validation is not None:
        hooks.insert(0, trainer.early_stopping)
    return hooks


def run_epochs(
    epoch: Epoch,
    progress: Progress,
    rng: np.random.Generator,
    n_epochs: int,
    hooks: Sequence[Hook] = (),
    verbose: int = 0,
) -> Iterator[Progress]:
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
            except BaseException as error:
                failure = error
            row = progress.row
            bar.set_postfix(cost=f"{row['cost']:.4g}", error=f"{row['training_error']:.3f}", refresh=False)
            bar.update()
            yield progress
            if failure is not None:
                raise failure
