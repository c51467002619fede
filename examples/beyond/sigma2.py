"""Rules for sigma2 against the class means: does training with a sigma2 that sets itself ever end below them?

Each repetition has its own data or split and its own seed. On BCI 2a session 1 trains and session 2 tests, so only the
seed differs, and the scores are means over the nine subjects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from examples.beyond.costs import spread_cost
from examples.beyond.problems import FILES, SPLITS, score_each
from examples.paper.data import Split, is_available
from examples.paper.evaluate import fit_and_score
from examples.paper.runner import Job, Record
from rplvq import RiemannianLVQ

__all__ = ["METHODS", "jobs", "smoke", "train"]

METHODS: dict[str, dict[str, Any]] = {
    "start": {"max_epochs": 0},
    "auto": {},
    "blended": {"sigma2": "blended"},
    "blended, step auto": {"sigma2": "blended", "step_size": "auto"},
    "half-median": {"sigma2": "half_median"},
    "heldout": {"sigma2": "heldout"},
    "heldout, step auto": {"sigma2": "heldout", "step_size": "auto"},
    "spread, start": {"max_epochs": 0, "decision": "posterior"},
    "spread, blended": {"sigma2": "blended", "decision": "posterior"},
}
"""Arguments of RiemannianLVQ. "spread" also sets a cost with one variance per class, and is run on SynII only."""


def train(*, repetition: int, method: str, data: str, subjects: Sequence[int] = (), **settings: Any) -> Record:
    """Fit a classifier whose arguments are the default ones except for ``settings``, and score it.

    Parameters
    ----------
    repetition : int
        Seed of the split and of training.
    method : str
        A name of METHODS.
    data : str
        A name of SPLITS, or "bci2a".
    subjects : sequence of int
        Subjects of "bci2a".
    **settings
        Arguments of RiemannianLVQ that replace those of the method.

    Returns
    -------
    dict
        accuracy, kappa, train_accuracy and epochs; posterior_accuracy and sigma2 if the classifier was trained. On
        "bci2a" lists over the subjects, and their means as mean_<name>.
    """

    def scored(split: Split, own: Record) -> Record:
        cost = {"cost": spread_cost(split.X_train, split.y_train)[0]} if method.startswith("spread") else {}
        model = RiemannianLVQ(random_state=repetition, **METHODS[method] | cost | own)
        return {"epochs": 0} | fit_and_score(model, split)

    return score_each(scored, data, repetition, [[subject] for subject in subjects], settings)


def jobs(quick: bool = False) -> list[Job]:
    """Return all jobs: 30 repetitions of SynII and 10 of the others; ``quick`` has 3 and 1, of 3 epochs."""
    return list(_jobs(1, {"max_epochs": 3}) if quick else _jobs(10, {}))


def smoke() -> list[Job]:
    """Return jobs of seconds: digits, one epoch."""
    return [
        Job("sigma2-digits", method, 0, {"data": "digits", "max_epochs": 1}, train) for method in _methods("digits")
    ]


def _methods(data: str) -> list[str]:
    return [name for name in METHODS if data == "syn2" or not name.startswith("spread")]


def _jobs(n_repetitions: int, short: Record) -> Iterator[Job]:
    for name in (*SPLITS, "bci2a"):
        if name in FILES and not is_available(FILES[name]):
            continue
        settings: Record = {"data": name} | ({"subjects": list(range(1, 10))} if name == "bci2a" else {})
        for repetition, method in product(
            range(3 * n_repetitions if name == "syn2" else n_repetitions), _methods(name)
        ):
            own = settings if method.endswith("start") else settings | short
            yield Job(f"sigma2-{name}", method, repetition, own, train)
