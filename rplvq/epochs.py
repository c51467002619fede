"""The loop over epochs, wherever the samples are: records, progress bar, callbacks, early stopping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from tqdm.auto import tqdm

from rplvq.history import EpochReport
from rplvq.progress import Origin, Progress
from rplvq.steps import State

__all__ = ["Callback", "Sweep", "epoch_by_epoch"]

Callback = Callable[[EpochReport], bool | None]
Sweep = Callable[[State], tuple[State, dict[str, float]]]
"""Takes the state at its epoch; returns it after the epoch, with the epoch's line of the history."""


def epoch_by_epoch(
    sweep: Sweep,
    progress: Progress,
    rng: np.random.Generator,
    n_epochs: int,
    *,
    callbacks: Sequence[Callback] = (),
    judge: tuple[float, int] | None = None,
    verbose: int = 0,
    between: Callable[[State], State] = lambda state: state,
    origin: Origin | None = None,
) -> Iterator[Progress]:
    """Train from where a run stands; callbacks are called when the following item is asked for.

    Parameters
    ----------
    sweep : callable
        One epoch.
    progress : Progress
        Where the run stands; ``rng`` is set to its random state.
    rng : numpy.random.Generator
        From which ``sweep`` draws.
    n_epochs : int
        Epochs in all.
    callbacks : sequence of callable
        Each is called with an :class:`rplvq.history.EpochReport` after each epoch; returning True stops.
    judge : tuple of float and int, optional
        Relative fall of the validation cost that counts, and epochs to wait for it.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    between : callable, optional
        Takes the state after an epoch that another one follows; returns the one from which that sets out.
    origin : Origin, optional
        Is handed to the callbacks.

    Yields
    ------
    Progress
        After each whole epoch.
    """
    rng.bit_generator.state = progress.rng
    began = progress.state.epoch
    with tqdm(total=n_epochs, initial=began, disable=not verbose, unit="epoch", leave=False) as bar:
        while progress.state.epoch < n_epochs and not progress.stopped:
            state = progress.state
            state = between(state) if state.epoch > 0 else state
            state, row = sweep(state.at_epoch(state.epoch + 1, n_epochs))
            progress = progress.advance(state, row, rng)
            if judge is not None:
                progress = progress.judge(row["validation_cost"], *judge)
            bar.set_postfix(cost=f"{row['cost']:.4g}", error=f"{row['training_error']:.3f}", refresh=False)
            bar.update()
            yield progress
            for callback in callbacks:
                if callback(EpochReport(state, n_epochs, row, progress, origin)):
                    progress = progress._replace(stopped=True)
